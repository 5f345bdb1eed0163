#include "core/state/manager_load.h"

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/state/load.h"

#include <algorithm>
#include <cerrno>

namespace yoke {

namespace {

Ref<State> load_step(const FoundStep &found, const ManagerLoad &options, const char *call)
{
    if (found.failure) std::rethrow_exception(found.failure);
    if (found.is_newer())
        fail(
            YOKE_E_CHECKPOINT,
            "%s: %s/%s has format %lld, but this version reads up to %lld; use a newer version of Yoke",
            call, found.path.c_str(), kManifestName, static_cast<long long>(found.manifest->format),
            static_cast<long long>(kManifestFormat));
    LoadOptions how;
    how.device = options.device;
    for (const StepFile &each : found.manifest->files) {
        const std::string path = found.path + "/" + each.name;
        if (each.name == kStateName)
            how.check = [&options, &each, path](const ReadFile &file) {
                if (options.verify) check_file(file, each, path);
            };
        else if (options.verify)
            check_file(ReadFile(call, path), each, path);
    }
    return load_state(found.path + "/" + kStateName, how, call);
}

}  // namespace

Ref<State> LoadAttempt::try_load(const FoundStep &found)
{
    try {
        Ref<State> state = load_step(found, options_, call_);
        loaded_ = &found;
        return state;
    } catch (const Error &error) {
        if (error.status() != YOKE_E_CHECKPOINT) {
            refused_ = std::current_exception();
            return {};
        }
        if (found.is_newer()) throw;
        add_part(problems_, error.what(), "; ");
        if (!found.failure) damaged_.push_back(&found);
        return {};
    }
}

void LoadAttempt::tell_passed_over() const
{
    if (has_passed_over())
        log(LogLevel::kWarn, "%s: the load goes on from %s, and skips damaged steps: %s", call_,
            loaded_->path.c_str(), problems_.c_str());
}

Ref<State> LoadAttempt::newest()
{
    // Damaged steps come before the others. They are reported first, and are never loaded.
    for (const FoundStep &each : found_)
        if (each.is_damaged()) (void)try_load(each);
    for (size_t i = found_.size(); i-- > 0 && !found_[i].is_damaged() && !refused_;)
        if (Ref<State> state = try_load(found_[i]); state.present()) return state;
    return {};
}

Ref<State> LoadAttempt::at(int64_t step)
{
    for (const FoundStep &each : found_)
        if (each.step == step) {
            is_asked_step_there_ = true;
            return try_load(each);
        }
    return {};
}

void LoadAttempt::refuse() const
{
    if (refused_) std::rethrow_exception(refused_);
    const std::string steps =
        joined(found_, ", ", [](const FoundStep &each) { return std::to_string(each.step); });
    if (options_.step && !is_asked_step_there_)
        throw Error(YOKE_E_CHECKPOINT,
                    format("%s: there is no step %lld in '%s'; the folder has %s", call_,
                           static_cast<long long>(*options_.step), folder_.c_str(),
                           steps.empty() ? "no steps" : ("the steps " + steps).c_str()),
                    ENOENT);
    if (options_.step)
        fail(YOKE_E_CHECKPOINT, "%s: step %lld is not complete: %s", call_,
             static_cast<long long>(*options_.step), problems_.c_str());
    if (found_.empty())
        throw Error(YOKE_E_CHECKPOINT,
                    format("%s: there is no step in '%s'; check whether a save was made there",
                           call_, folder_.c_str()),
                    ENOENT);
    fail(YOKE_E_CHECKPOINT, "%s: no step in '%s' (%s) is complete: %s", call_, folder_.c_str(),
         steps.c_str(), problems_.c_str());
}

bool LoadAttempt::is_outdated() const
{
    const std::vector<FoundStep> now = find_steps(folder_, call_);
    return !std::ranges::equal(
        now, found_, [](const FoundStep &a, const FoundStep &b) { return is_same_step(a, b); });
}

}  // namespace yoke
