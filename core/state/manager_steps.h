// manager_steps.h: the steps in a folder of a CheckpointManager, as they are found on the disk.
#pragma once

#include "core/state/manifest.h"
#include "core/state/read_file.h"

#include <exception>
#include <optional>

namespace yoke {

struct FoundStep {
    int64_t step = 0;
    std::string path;                  // path of the step's folder
    std::optional<Manifest> manifest;  // nullopt if unreadable
    std::exception_ptr
        failure;  // why it is not whole, or not known to be; null as far as names and sizes tell
    std::string problem;      // text of the failure
    bool is_refused = false;  // the system refuses the read: no damage
    bool is_ours = true;      // the folder has a manifest, damaged or not

    // Returns the step's commit number, or 0 if unknown.
    int64_t commit() const { return manifest ? manifest->commit : 0; }
    bool is_damaged() const { return failure && !is_refused; }
    // Returns whether the step may be the newest, because its commit is unknown.
    bool is_unknown() const { return is_refused && !manifest; }
    bool is_newer() const { return manifest && manifest->format > kManifestFormat; }
};

std::string step_name(int64_t step);
// Returns 7 for "step-7". Returns nullopt for a name that a manager would not write, such as "step-07".
std::optional<int64_t> step_of(std::string_view name);

// Returns whether two looks at a folder found a step in the same state: place, commit and failure.
bool is_same_step(const FoundStep &a, const FoundStep &b);

// Returns the steps of a folder in commit order, as they are without a concurrent change: a step being replaced or
// removed by a writer never counts as damaged. Damaged steps come first. Steps with a manifest that the system
// refuses to read come last. Returns no steps if there is no such folder. Raises YOKE_E_IO if the system does not
// list the folder.
std::vector<FoundStep> find_steps(const std::string &folder, const char *call);

// Returns the steps among a folder's entries, in the same order, after a single look at each step. The result is
// right if no other process changes the folder meanwhile.
std::vector<FoundStep> find_steps(const std::string &folder,
                                  const std::vector<std::string> &entries, const char *call);
// Returns a single step, after a single look, or nullopt if the step is missing.
std::optional<FoundStep> find_step(const std::string &folder,
                                   const std::vector<std::string> &entries, int64_t step,
                                   const char *call);

// Raises YOKE_E_CHECKPOINT if the file's size or hash differs from the manifest.
void check_file(const ReadFile &file, const StepFile &stored, const std::string &path);

}  // namespace yoke
