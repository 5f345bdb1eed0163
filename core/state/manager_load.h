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
    std::optional<int64_t> step = {};  // nothing: the newest that is whole
    Device *device = nullptr;          // null: the CPU
    bool verify = true;                // the hashes of its files
};

// The steps of a folder as one look has found them, and what was tried to load of them. One thread uses it.
class LoadAttempt {
public:
    LoadAttempt(const std::string &folder, const ManagerLoad &options, const char *call)
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
    // Lacks that names and sizes do not tell.
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

}  // namespace yoke
