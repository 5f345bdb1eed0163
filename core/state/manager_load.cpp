// How a manager finds the step to load: core/state/manager.h.
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/state/manager.h"
#include "core/state/manager_steps.h"

#include <algorithm>
#include <cerrno>
#include <mutex>

namespace yoke {

namespace {

Ref<State> load_step(const FoundStep &found, const ManagerLoad &options, const char *call)
{
    if (found.failure) std::rethrow_exception(found.failure);
    if (found.is_newer())
        fail(
            YOKE_E_CHECKPOINT,
            "%s: %s/%s is of format %lld, and this version reads up to %lld; load it with a newer version of Yoke",
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

// The steps of a folder as a load has seen them.
class CheckpointManager::Attempt {
public:
    Attempt(const std::string &folder, const ManagerLoad &options, const char *call)
        : folder_(folder), options_(options), call_(call), found_(find_steps(folder, call))
    {
    }

    // Absent where none can be loaded.
    Ref<State> newest();
    Ref<State> at(int64_t step);
    [[noreturn]] void refuse() const;
    // Whether something was committed or removed since.
    bool is_outdated() const;
    bool has_passed_over() const { return !problems_.empty(); }
    void tell_passed_over() const;
    // Those that names and sizes do not tell.
    const std::vector<const FoundStep *> &damaged() const { return damaged_; }
    const FoundStep *loaded() const { return loaded_; }

private:
    // Absent where it is damaged, or refused.
    Ref<State> try_load(const FoundStep &found);

    const std::string &folder_;
    const ManagerLoad &options_;
    const char *const call_;
    const std::vector<FoundStep> found_;
    std::string problems_;
    std::vector<const FoundStep *> damaged_;
    const FoundStep *loaded_ = nullptr;
    std::exception_ptr refused_;  // by the system: what was found elsewhere does not stand for it
    bool is_asked_step_there_ = false;
};

Ref<State> CheckpointManager::Attempt::try_load(const FoundStep &found)
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
        problems_ += std::string(problems_.empty() ? "" : "; ") + error.what();
        if (!found.failure) damaged_.push_back(&found);
        return {};
    }
}

void CheckpointManager::Attempt::tell_passed_over() const
{
    if (has_passed_over())
        log(LogLevel::kWarn, "%s: goes on from %s, and passes over what is damaged: %s", call_,
            loaded_->path.c_str(), problems_.c_str());
}

Ref<State> CheckpointManager::Attempt::newest()
{
    // Those that are known to be damaged stand before the others: told of first, they are loaded by nobody.
    for (const FoundStep &each : found_)
        if (each.is_damaged()) (void)try_load(each);
    for (size_t i = found_.size(); i-- > 0 && !found_[i].is_damaged() && !refused_;)
        if (Ref<State> state = try_load(found_[i]); state.present()) return state;
    return {};
}

Ref<State> CheckpointManager::Attempt::at(int64_t step)
{
    for (const FoundStep &each : found_)
        if (each.step == step) {
            is_asked_step_there_ = true;
            return try_load(each);
        }
    return {};
}

void CheckpointManager::Attempt::refuse() const
{
    if (refused_) std::rethrow_exception(refused_);
    std::string steps;
    for (const FoundStep &each : found_)
        steps += (steps.empty() ? "" : ", ") + std::to_string(each.step);
    if (options_.step && !is_asked_step_there_)
        throw Error(YOKE_E_CHECKPOINT,
                    format("%s: there is no step %lld in '%s', which has %s", call_,
                           static_cast<long long>(*options_.step), folder_.c_str(),
                           steps.empty() ? "none" : steps.c_str()),
                    ENOENT);
    if (options_.step)
        fail(YOKE_E_CHECKPOINT, "%s: step %lld is not whole: %s", call_,
             static_cast<long long>(*options_.step), problems_.c_str());
    if (found_.empty())
        throw Error(YOKE_E_CHECKPOINT,
                    format("%s: there is no step in '%s'; has anything been saved there?", call_,
                           folder_.c_str()),
                    ENOENT);
    fail(YOKE_E_CHECKPOINT, "%s: none of the steps in '%s' (%s) is whole: %s", call_,
         folder_.c_str(), steps.c_str(), problems_.c_str());
}

bool CheckpointManager::Attempt::is_outdated() const
{
    const std::vector<FoundStep> now = find_steps(folder_, call_);
    return !std::ranges::equal(
        now, found_, [](const FoundStep &a, const FoundStep &b) { return is_same_step(a, b); });
}

void CheckpointManager::remember(const Attempt &attempt) const
{
    const std::lock_guard lock(mutex_);
    for (const FoundStep *each : attempt.damaged()) damaged_.insert({each->step, each->commit()});
    if (attempt.loaded()) damaged_.erase({attempt.loaded()->step, attempt.loaded()->commit()});
}

Ref<State> CheckpointManager::load(const ManagerLoad &options, const char *call) const
{
    if (options.step && *options.step < 0)
        fail(YOKE_E_VALUE, "%s: argument 'step' is %lld; steps count from 0", call,
             static_cast<long long>(*options.step));
    // Another process may save meanwhile, and remove or replace what is being read: there is a newer one then, and
    // nothing is damaged.
    constexpr int kMostAttempts = 100;
    for (int i = 1;; ++i) {
        Attempt attempt(path_, options, call);
        Ref<State> state = options.step ? attempt.at(*options.step) : attempt.newest();
        const bool is_well = state.present() && !attempt.has_passed_over();
        if (!is_well && i < kMostAttempts && attempt.is_outdated()) continue;
        remember(attempt);
        if (!state.present()) attempt.refuse();
        attempt.tell_passed_over();
        return state;
    }
}

}  // namespace yoke
