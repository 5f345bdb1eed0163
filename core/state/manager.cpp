#include "core/state/manager.h"

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/state/folder_lock.h"
#include "core/state/hash.h"
#include "core/state/manager_steps.h"
#include "core/state/new_folder.h"
#include "core/state/writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <mutex>

namespace yoke {

// ---- Saving -----------------------------------------------------------------------------------------------------

// Writer of the folder. It lives as long as a save or the manager needs it.
class CheckpointManager::Folder {
public:
    Folder(std::string path, int64_t keep) : path_(std::move(path)), keep_(keep), process_(getpid())
    {
    }

    // Returns whether this process made the Folder. A forked child does not write with it, and needs a Folder of its
    // own.
    bool is_mine() const { return process_ == getpid(); }
    // Returns the mutex for each change in the folder.
    std::mutex &mutex() { return mutex_; }

    // Begins the folder of a step, with mutex() held, and sets the commit number. The first save into an existing
    // folder takes the lock. Raises YOKE_E_STATE if another program wrote a folder of this name.
    std::unique_ptr<NewFolder> begin(int64_t step, int64_t *commit, const char *call);
    // Removes all but the newest steps, with mutex() held.
    void prune(const char *call) noexcept;

private:
    std::vector<std::string> lock(const char *call);

    const std::string path_;
    const int64_t keep_;
    const pid_t process_;
    std::mutex mutex_;
    std::unique_ptr<FolderLock> lock_;
    int64_t last_commit_ = 0;
};

// Returns the folder's entries, with the folder locked for this process. If the lock is not in place, makes and locks
// the folder, and finds the largest commit number. Raises YOKE_E_IO if a step's number cannot be read.
std::vector<std::string> CheckpointManager::Folder::lock(const char *call)
{
    if (lock_ && lock_->is_in_place(call)) return list_folder(call, path_);
    lock_ = nullptr;
    last_commit_ = 0;
    make_folders(call, path_);
    auto lock = std::make_unique<FolderLock>(call, path_);
    std::vector<std::string> entries = list_folder(call, path_);
    std::vector<FoundStep> found = find_steps(path_, entries, call);
    // If the file system has no locks, another process may be writing. A single look then counts its half-written
    // steps as damaged, so look again.
    if (std::ranges::any_of(found, [](const FoundStep &each) { return each.failure != nullptr; }))
        found = find_steps(path_, call);
    for (const FoundStep &each : found) {
        // The step's commit number is unknown. A save with a smaller number would never be the newest.
        if (each.is_unknown()) std::rethrow_exception(each.failure);
        last_commit_ = std::max(last_commit_, each.commit());
    }
    lock_ = std::move(lock);
    return entries;
}

std::unique_ptr<NewFolder> CheckpointManager::Folder::begin(int64_t step, int64_t *commit,
                                                            const char *call)
{
    const std::vector<std::string> entries = lock(call);
    // A folder written by another program must not be replaced.
    if (const std::optional<FoundStep> there = find_step(path_, entries, step, call)) {
        if (there->is_unknown()) std::rethrow_exception(there->failure);
        if (!there->is_ours)
            fail(
                YOKE_E_STATE,
                "%s: '%s' already exists and no CheckpointManager wrote it; move it away, or name another folder",
                call, there->path.c_str());
    }
    *commit = ++last_commit_;
    return std::make_unique<NewFolder>(call, path_, step_name(step), entries);
}

// Removes old steps. The new state is in its place, so an error here is no failure of the save. After an error, logs
// a warning; the next save tries again.
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
        log(LogLevel::kWarn, "%s: '%s' still has old steps, which could not be removed: %s", call,
            path_.c_str(), error.what());
    }
}

// Step written to a new folder. The folder gets its final name once the step is complete.
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
    const int64_t step_;
    int64_t commit_ = 0;
    Hash128 hash_;
    std::unique_ptr<NewFolder> new_;
    FileWriter *state_ = nullptr;
};

CheckpointManager::Target::Target(std::shared_ptr<Folder> folder, int64_t step, const char *call)
    : folder_(std::move(folder)), call_(call), step_(step)
{
    const std::lock_guard lock(folder_->mutex());
    new_ = folder_->begin(step, &commit_, call);
    state_ = &new_->create(kStateName);
}

CheckpointManager::Target::~Target()
{
    // The mutex keeps other saves from a look for leftovers while a failed save removes its files.
    const std::lock_guard lock(folder_->mutex());
    new_.reset();
}

void CheckpointManager::Target::commit()
{
    state_->finish();
    const std::string text =
        manifest_text({.step = step_,
                       .commit = commit_,
                       .time = utc_time(),
                       .files = {{kStateName, state_->bytes(), hash_.text()}}});
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
    wait_for_save(call, options.is_blocking);  // before any file of this save is on the disk
    return save_to(std::make_unique<Target>(folder(), step, call), std::move(whole),
                   options.is_blocking, call);
}

// ---- Loading ---------------------------------------------------------------------------------------------------

void CheckpointManager::remember(const LoadAttempt &attempt) const
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
    // Meanwhile, another process may save, and remove or replace the files being read. Then a newer step exists, and
    // no step is damaged.
    constexpr int kMostAttempts = 100;
    for (int i = 1;; ++i) {
        LoadAttempt attempt(path_, options, call);
        Ref<State> state = options.step ? attempt.at(*options.step) : attempt.newest();
        const bool is_well = state.present() && !attempt.has_passed_over();
        if (!is_well && i < kMostAttempts && attempt.is_outdated()) continue;
        remember(attempt);
        if (!state.present()) attempt.refuse();
        attempt.tell_passed_over();
        return state;
    }
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
        fail(YOKE_E_VALUE, "%s: argument 'keep' is %lld; it must be at least 1", call,
             static_cast<long long>(keep));
    // An absolute path stays valid after a change of the working directory.
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::absolute(folder, error);
    if (error) fail_io(call, "find", folder, error.value());
    return Ref<CheckpointManager>::adopt(new CheckpointManager(whole.string(), keep));
}

// Returns the steps, without damaged steps: neither steps with visible damage, nor steps that a load has found
// damaged.
std::vector<FoundStep> CheckpointManager::find(const char *call) const
{
    std::vector<FoundStep> found = find_steps(path_, call);
    const std::lock_guard lock(mutex_);
    std::erase_if(found, [this](const FoundStep &each) {
        return each.is_damaged() || damaged_.contains({each.step, each.commit()});
    });
    return found;
}

std::vector<int64_t> CheckpointManager::steps(const char *call) const
{
    std::vector<int64_t> steps;
    for (const FoundStep &each : find(call)) {
        if (each.failure) std::rethrow_exception(each.failure);
        steps.push_back(each.step);
    }
    return steps;
}

std::optional<int64_t> CheckpointManager::latest(const char *call) const
{
    const std::vector<FoundStep> found = find(call);
    if (found.empty()) return {};
    if (found.back().failure) std::rethrow_exception(found.back().failure);
    return found.back().step;
}

}  // namespace yoke
