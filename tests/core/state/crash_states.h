// crash_states.h: states of a folder that a crash may leave, in the manner of ALICE (Pillai et al., OSDI 2014): every
// state allowed by the promises of POSIX, not only states made by a single file system.
//
//   * Each change of a folder (an entry made, renamed, exchanged, removed) is there whole or not at all. Until a sync
//     of the folder, each change may be there or not, independently of other changes: later changes without earlier
//     changes, in a single folder or in two. If two present changes set the same name, the later change stands.
//   * Until a sync of the file, each write to a file may be there whole, or by half, or as zeros, or not at all,
//     independently of other writes and of the folders. The sync of a file syncs no folder, and the sync of a folder
//     syncs no file.
#pragma once

#include "tests/core/state/file_seam.h"

namespace yoke::test {

constexpr const char *kAbsent = "(absent)";

// Paths, and what stands there; a folder's ends with a slash.
using Tree = std::map<std::string, std::string>;

// Contents that each name may have after a crash.
using Allowed = std::map<std::string, std::set<std::string>>;

struct CrashStates {
    std::set<Tree> seen;  // over all points of a crash
    size_t tried = 0;
    std::string wrong;  // the first state that may not be; "" if each is right
};

// Judge of a state, in view of the contents that its names may have. Returns the defect, or "" for a right state.
using Judge = std::function<std::string(const Tree &, const Allowed &)>;

// Returns the defect of a state for the loader, or "". The loader finds a file by its name, a folder by find_folders,
// with the content of all its files.
std::string wrong_with(const Tree &tree, const Allowed &allowed);

// Every state after a crash behind each event of the log, up to the first that is wrong.
CrashStates crash_states(const std::vector<Event> &events, const Judge &judge = wrong_with);

// Return the log without an event, or with the event moved behind the next rename or run of renames.
std::vector<Event> without(std::vector<Event> events, size_t i);
std::vector<Event> moved(const std::vector<Event> &events, size_t i);

// A state, for messages.
std::string shown(const Tree &tree);

// The content of a folder of such files.
std::string folder_content(const std::map<std::string, std::string> &files);

}  // namespace yoke::test
