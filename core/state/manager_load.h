// manager_load.h: how a CheckpointManager finds the step to load.
#pragma once

#include "core/state/manager_steps.h"
#include "core/state/tree.h"

#include <exception>
#include <optional>
#include <string>
#include <vector>

namespace yoke {

struct ManagerLoad {
    std::optional<int64_t> step = {};  // nullopt: the newest whole step
    Device *device = nullptr;          // null: the CPU
    bool verify = true;                // check the hashes of the files
};

// Steps of a folder at a single look, and the attempts to load them. For one thread.
class LoadAttempt {
public:
    LoadAttempt(const std::string &folder, const ManagerLoad &options, const char *call)
        : folder_(folder), options_(options), call_(call), found_(find_steps(folder, call))
    {
    }

    // Loads the newest whole step; at() loads a given step. Returns an absent state if the step cannot be loaded.
    // Raises YOKE_E_CHECKPOINT if a newer version has written the step.
    Ref<State> newest();
    Ref<State> at(int64_t step);
    [[noreturn]] void refuse() const;
    // Returns whether a step was committed, removed or damaged since the look at the folder.
    bool is_outdated() const;
    bool has_passed_over() const { return !problems_.empty(); }
    void tell_passed_over() const;
    // Returns the steps whose damage only the load has found, since names and sizes do not show it.
    const std::vector<const FoundStep *> &damaged() const { return damaged_; }
    const FoundStep *loaded() const { return loaded_; }

private:
    // Loads a step. Returns an absent state, and notes why, if the step is damaged or the system refuses. Raises
    // YOKE_E_CHECKPOINT if a newer version has written the step.
    Ref<State> try_load(const FoundStep &found);

    const std::string &folder_;
    const ManagerLoad &options_;
    const char *const call_;
    const std::vector<FoundStep> found_;
    std::string problems_;
    std::vector<const FoundStep *> damaged_;
    const FoundStep *loaded_ = nullptr;
    std::exception_ptr refused_;  // system's error: no other step may replace this step
    bool is_asked_step_there_ = false;
};

}  // namespace yoke
