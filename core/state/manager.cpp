#include "core/state/manager.h"

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/state/files.h"
#include "core/state/hash.h"
#include "core/state/manager_steps.h"
#include "core/state/writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <mutex>

namespace yoke {

// ---- Saving -----------------------------------------------------------------------------------------------------

// What writes to the folder, for as long as a save or the manager needs it.
class CheckpointManager::Folder {
public:
    Folder(std::string path, int64_t keep) : path_(std::move(path)), keep_(keep), process_(getpid())
    {
    }

    const std::string &path() const { return path_; }
    // A forked child writes nothing: it needs one of its own.
    bool is_mine() const { return process_ == getpid(); }
    // For each time that something is changed in the folder.
    std::mutex &mutex() { return mutex_; }

    // The rest with mutex() held. Takes the lock, if this is the first save into the folder that is there.
    void begin(const char *call);
    int64_t next_commit() { return ++last_commit_; }
    void prune(const char *call) noexcept;

private:
    const std::string path_;
    const int64_t keep_;
    const pid_t process_;
    std::mutex mutex_;
    std::unique_ptr<FolderLock> lock_;
    int64_t last_commit_ = 0;
};

void CheckpointManager::Folder::begin(const char *call)
{
    if (lock_ && lock_->is_in_place(call)) return;
    lock_ = nullptr;
    last_commit_ = 0;
    make_folders(call, path_);
    auto lock = std::make_unique<FolderLock>(call, path_);
    for (const FoundStep &each : find_steps(path_, call))
        last_commit_ = std::max(last_commit_, each.commit());
    lock_ = std::move(lock);
}

// The new state is in its place: what goes wrong here is no failure of the save, and the next one tries again.
void CheckpointManager::Folder::prune(const char *call) noexcept
{
    try {
        std::vector<FoundStep> found = find_steps(path_, call);
        std::erase_if(found, [](const FoundStep &each) { return !each.is_ours; });
        for (const FoundStep &each : found)
            if (each.is_refused) throw Error(YOKE_E_IO, each.problem);
        const auto kept = static_cast<uint64_t>(keep_);
        for (size_t i = 0; i < found.size() && found.size() - i > kept; ++i)
            remove_folder(call, path_ + "/" + step_name(found[i].step));
    } catch (const std::exception &error) {
        log(LogLevel::kWarn, "%s: '%s' keeps more steps than it should: %s", call, path_.c_str(),
            error.what());
    }
}

// One step, in a folder that is put in its place when all of it is written.
class CheckpointManager::Target final : public SaveTarget {
public:
    Target(std::shared_ptr<Folder> folder, int64_t step, const char *call);
    ~Target() override;

    void write(const void *from, uint64_t bytes) override
    {
        state_->write(from, bytes);
        hash_.add(from, bytes);
    }
    void commit() override;

private:
    std::shared_ptr<Folder> folder_;
    const char *const call_;
    Manifest manifest_;
    Hash128 hash_;
    std::unique_ptr<NewFolder> new_;
    FileWriter *state_ = nullptr;
};

namespace {

// What somebody else wrote there is not ours to replace.
void check_ours(const std::string &folder, int64_t step, const char *call)
{
    for (const FoundStep &each : find_steps(folder, call))
        if (each.step == step && !each.is_ours)
            fail(
                YOKE_E_STATE,
                "%s: '%s' is there and was written by no CheckpointManager; move it away, or name another folder",
                call, each.path.c_str());
}

}  // namespace

CheckpointManager::Target::Target(std::shared_ptr<Folder> folder, int64_t step, const char *call)
    : folder_(std::move(folder)), call_(call)
{
    const std::lock_guard lock(folder_->mutex());
    folder_->begin(call);
    check_ours(folder_->path(), step, call);
    manifest_.step = step;
    manifest_.commit = folder_->next_commit();
    new_ = std::make_unique<NewFolder>(call, folder_->path(), step_name(step));
    state_ = &new_->create(kStateName);
}

CheckpointManager::Target::~Target()
{
    // What is left of a save that failed goes while nobody else looks for leftovers.
    const std::lock_guard lock(folder_->mutex());
    new_.reset();
}

void CheckpointManager::Target::commit()
{
    state_->finish();
    manifest_.time = utc_time();
    manifest_.files.push_back({kStateName, state_->bytes(), hash_.text()});
    const std::string text = manifest_text(manifest_);
    const std::lock_guard lock(folder_->mutex());
    new_->create(kManifestName).write(text.data(), text.size());
    new_->commit();
    folder_->prune(call_);
}

Ref<Work> CheckpointManager::save(int64_t step, const State &state, const SaveOptions &options,
                                  const char *call)
{
    if (step < 0)
        fail(YOKE_E_VALUE, "%s: argument 'step' is %lld; steps count from 0", call,
             static_cast<long long>(step));
    StateToSave whole = StateToSave::of(state, options, call);
    wait_for_save(call, options.is_blocking);  // before anything of this one is on the disk
    return save_to(std::make_unique<Target>(folder(), step, call), std::move(whole),
                   options.is_blocking, call);
}

// ---- The manager ------------------------------------------------------------------------------------------------

CheckpointManager::CheckpointManager(std::string path, int64_t keep)
    : path_(std::move(path)), keep_(keep), folder_(std::make_shared<Folder>(path_, keep_))
{
}

CheckpointManager::~CheckpointManager() = default;

std::shared_ptr<CheckpointManager::Folder> CheckpointManager::folder()
{
    const std::lock_guard lock(mutex_);
    if (!folder_->is_mine()) folder_ = std::make_shared<Folder>(path_, keep_);
    return folder_;
}

Ref<CheckpointManager> CheckpointManager::open(const std::string &folder, int64_t keep,
                                               const char *call)
{
    if (folder.empty())
        fail(YOKE_E_VALUE, "%s: argument 'folder' is empty; name the folder for the steps", call);
    if (keep < 1)
        fail(YOKE_E_VALUE, "%s: argument 'keep' is %lld; at least 1 state is kept", call,
             static_cast<long long>(keep));
    // The same one after a change of the working directory.
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::absolute(folder, error);
    if (error) fail_io(call, "find", folder, error.value());
    return Ref<CheckpointManager>::adopt(new CheckpointManager(whole.string(), keep));
}

std::vector<int64_t> CheckpointManager::steps(const char *call) const
{
    std::vector<int64_t> steps;
    for (const FoundStep &each : find_steps(path_, call))
        if (!each.failure) steps.push_back(each.step);
    return steps;
}

// ---- Loading ----------------------------------------------------------------------------------------------------

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

// What a load has seen of a folder.
class Attempt {
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

private:
    // Absent where it is damaged.
    Ref<State> try_load(const FoundStep &found);
    const std::string &folder_;
    const ManagerLoad &options_;
    const char *const call_;
    const std::vector<FoundStep> found_;
    std::string problems_;
    std::string loaded_;          // the path of the step
    std::exception_ptr refused_;  // by the system
    bool is_asked_step_there_ = false;
};

Ref<State> Attempt::try_load(const FoundStep &found)
{
    try {
        Ref<State> state = load_step(found, options_, call_);
        loaded_ = found.path;
        return state;
    } catch (const Error &error) {
        const bool is_damaged = error.status() == YOKE_E_CHECKPOINT || error.status() == YOKE_E_IO;
        if (!is_damaged || found.is_newer()) throw;
        problems_ += std::string(problems_.empty() ? "" : "; ") + error.what();
        if (error.status() == YOKE_E_IO) refused_ = std::current_exception();
        return {};
    }
}

void Attempt::tell_passed_over() const
{
    if (has_passed_over())
        log(LogLevel::kWarn, "%s: goes on from %s, and passes over what is damaged: %s", call_,
            loaded_.c_str(), problems_.c_str());
}

Ref<State> Attempt::newest()
{
    // Those that are known to be damaged stand before the others: told of first, they are loaded by nobody.
    for (const FoundStep &each : found_)
        if (each.failure) (void)try_load(each);
    for (size_t i = found_.size(); i-- > 0 && !found_[i].failure;)
        if (Ref<State> state = try_load(found_[i]); state.present()) return state;
    return {};
}

Ref<State> Attempt::at(int64_t step)
{
    for (const FoundStep &each : found_)
        if (each.step == step) {
            is_asked_step_there_ = true;
            return try_load(each);
        }
    return {};
}

void Attempt::refuse() const
{
    std::string steps;
    for (const FoundStep &each : found_)
        steps += (steps.empty() ? "" : ", ") + std::to_string(each.step);
    if (options_.step && !is_asked_step_there_)
        throw Error(YOKE_E_CHECKPOINT,
                    format("%s: there is no step %lld in '%s', which has %s", call_,
                           static_cast<long long>(*options_.step), folder_.c_str(),
                           steps.empty() ? "none" : steps.c_str()),
                    ENOENT);
    if (options_.step && refused_) std::rethrow_exception(refused_);
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

bool Attempt::is_outdated() const
{
    const std::vector<FoundStep> now = find_steps(folder_, call_);
    return !std::ranges::equal(
        now, found_, [](const FoundStep &a, const FoundStep &b) { return is_same_step(a, b); });
}

}  // namespace

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
        if (!state.present()) attempt.refuse();
        attempt.tell_passed_over();
        return state;
    }
}

}  // namespace yoke
