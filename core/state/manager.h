// manager.h: the newest states of a run in a folder, FOLDER/step-N/{state.safetensors, MANIFEST.json}.
//
// A step's folder is written under another name and renamed last, so that what is found under step-N was whole when its
// writer ended; the manifest tells when it no longer is. Only who saves changes anything: the first save takes the
// folder's lock for as long as the manager lives and removes what a killed writer left, a load reads.
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
    // Raises YOKE_E_VALUE for `keep` below 1. Touches no file.
    static Ref<CheckpointManager> open(const std::string &folder, int64_t keep, const char *call);

    // In the place of a former step of that number; then all but the newest `keep` are removed. What cannot be removed
    // is told in the log. Raises as save_state, and YOKE_E_STATE where another one writes to the folder.
    Ref<Work> save(int64_t step, const State &state, const SaveOptions &options, const char *call);

    // Those that are whole as far as names, sizes and this manager's loads tell, in the order in which they were
    // committed: the newest last. Raises YOKE_E_IO where the system refuses to look at one.
    std::vector<int64_t> steps(const char *call) const;
    // The one that load tries first. Raises YOKE_E_IO where the system refuses what load would fail with.
    std::optional<int64_t> latest(const char *call) const;

    // Damaged ones are passed over with one warning. Raises YOKE_E_CHECKPOINT with what was found where none is whole,
    // where the step asked for is not, and for one that a newer version has written. Its native code is ENOENT where
    // there is no such step at all, damaged or not. Raises YOKE_E_IO where the system refuses to read the newest
    // one, or one that may be that, and YOKE_E_OOM: such a step may be whole, and an older one does not stand for it.
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
    // Steps with their commits whose content a load has found damaged, which names and sizes do not tell.
    mutable std::set<std::pair<int64_t, int64_t>> damaged_;
};

}  // namespace yoke
