// manager_steps.h: the steps in a folder of a CheckpointManager, as they are found on the disk.
#pragma once

#include "core/state/manifest.h"
#include "core/state/read_file.h"

#include <exception>
#include <optional>

namespace yoke {

struct FoundStep {
    int64_t step = 0;
    std::string path;                  // of its folder
    std::optional<Manifest> manifest;  // nothing where it cannot be read
    std::exception_ptr
        failure;  // why it is not whole, or not known to be; null as far as names and sizes tell
    std::string problem;      // its text
    bool is_refused = false;  // the system refuses to tell: it is no damage
    bool is_ours = true;      // it has a manifest, damaged or not

    // 0 where that is not known.
    int64_t commit() const { return manifest ? manifest->commit : 0; }
    bool is_damaged() const { return failure && !is_refused; }
    // Whether it may be the newest one for all that is known.
    bool is_unknown() const { return is_refused && !manifest; }
    bool is_newer() const { return manifest && manifest->format > kManifestFormat; }
};

std::string step_name(int64_t step);
// "step-7" is 7; what a manager would write otherwise, such as "step-07", is none.
std::optional<int64_t> step_of(std::string_view name);

// Whether two looks at a folder found the same of a step.
bool is_same_step(const FoundStep &a, const FoundStep &b);

// In the order of their commits, as they stand while nobody changes them: a step that a writer replaces or removes
// meanwhile counts as damaged in no moment. The damaged ones stand before the others, and last those whose manifest the
// system refuses to read. None where there is no such folder; raises YOKE_E_IO where the system does not list it.
std::vector<FoundStep> find_steps(const std::string &folder, const char *call);

// Returns the same by one look at the entries of a folder, which nobody changes meanwhile.
std::vector<FoundStep> find_steps(const std::string &folder,
                                  const std::vector<std::string> &entries, const char *call);
// Returns one of them; nothing if there is none.
std::optional<FoundStep> find_step(const std::string &folder,
                                   const std::vector<std::string> &entries, int64_t step,
                                   const char *call);

// Raises YOKE_E_CHECKPOINT unless the file has the bytes and the hash that the manifest says.
void check_file(const ReadFile &file, const StepFile &stored, const std::string &path);

}  // namespace yoke
