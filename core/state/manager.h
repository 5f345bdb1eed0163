// manager.h: the newest states of a run in a folder, FOLDER/step-N/{state.safetensors, MANIFEST.json}.
//
// A step's folder is written under another name and renamed last. So a step-N was whole when its writer ended, and
// the manifest shows later damage. Only a save changes the folder. The first save takes the folder's lock for the
// life of the manager, and removes leftovers of killed writers. A load only reads.
#pragma once

#include "core/base/fork.h"
#include "core/state/manager_load.h"
#include "core/state/save.h"

#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace yoke {

// Safe to use from any thread.
class CheckpointManager final : public RefCounted {
public:
    // Returns a manager for the folder, made absolute. Raises YOKE_E_VALUE for an empty folder, and for `keep` below
    // 1. Touches no file.
    static Ref<CheckpointManager> open(const std::string &folder, int64_t keep, const char *call);

    // Saves a state as a step, in the place of a former step of the same number. Then removes all but the newest
    // `keep` steps; the log names steps that cannot be removed. Returns the work of a save in the background. Raises
    // as save_state, and YOKE_E_STATE if another process writes to the folder.
    Ref<Work> save(int64_t step, const State &state, const SaveOptions &options, const char *call);

    // Returns the whole steps, judged by names, sizes and this manager's loads, in commit order: the newest last.
    // Raises YOKE_E_IO if the system refuses to read a step.
    std::vector<int64_t> steps(const char *call) const;
    // Returns the step that load() tries first, or nullopt if there is no whole step. Raises YOKE_E_IO if the system
    // refuses a step that load() would need.
    std::optional<int64_t> latest(const char *call) const;

    // Loads a step, by default the newest whole step, and returns its state. Damaged steps are passed over with a
    // warning. Raises YOKE_E_CHECKPOINT, with the steps found, if no step is whole, if the given step is not whole,
    // or if a newer version has written the step. The native code is ENOENT if there is no such step at all, damaged
    // or not. Raises YOKE_E_IO if the system refuses to read the newest step, or a step that may be the newest, and
    // YOKE_E_OOM. Such a step may be whole, so an older step must not replace it.
    Ref<State> load(const ManagerLoad &options, const char *call) const;

private:
    class Folder;
    class Target;

    CheckpointManager(std::string path, int64_t keep);
    ~CheckpointManager() override;
    void destroy() noexcept override { delete this; }
    std::shared_ptr<Folder> folder();
    std::vector<FoundStep> find(const char *call) const;
    void remember(const LoadAttempt &attempt) const;

    const std::string path_;
    const int64_t keep_;
    mutable Mutex mutex_{LockRank::kOther};
    std::shared_ptr<Folder> folder_;
    // Steps with their commits, found damaged by a load. Names and sizes do not show such damage.
    mutable std::set<std::pair<int64_t, int64_t>> damaged_;
};

}  // namespace yoke
