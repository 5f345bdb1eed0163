// crash_states.h: what a crash may leave of a folder, in the manner of ALICE (Pillai et al., OSDI 2014): every state
// that the promises of POSIX allow, not those alone that one file system makes.
//
//   * Each change of a folder (an entry made, renamed, exchanged, removed) is there whole or not at all. As long as the
//     folder was not synced since, each may be there or not, whichever others are: later ones without earlier ones, of
//     one folder as of two. Where two that are there set the same name, the later one stands.
//   * Of each write to a file that was not synced since, all may be there, or half, or zeros, or nothing; whatever is
//     there of other writes and of the folders. The sync of a file is none of its folder, nor the other way round.
#pragma once

#include "tests/core/state/file_seam.h"

namespace yoke::test {

constexpr const char *kAbsent = "(absent)";

// Paths, and what stands there; a folder's ends with a slash.
using Tree = std::map<std::string, std::string>;

// What each name may be found with after a crash.
using Allowed = std::map<std::string, std::set<std::string>>;

struct CrashStates {
    std::set<Tree> seen;  // over all points of a crash
    size_t tried = 0;
    std::string wrong;  // the first state that may not be; "" if each is right
};

// What is wrong with a state, in view of what its names may be found with; "" if nothing is.
using Judge = std::function<std::string(const Tree &, const Allowed &)>;

// A name is found as the loader finds it: a file by its name, a folder by find_folders, with the content of all its
// files.
std::string wrong_with(const Tree &tree, const Allowed &allowed);

// Every state after a crash behind each event of the log, up to the first that is wrong.
CrashStates crash_states(const std::vector<Event> &events, const Judge &judge = wrong_with);

// The log without an event, and with it behind the next rename, or behind those that follow one another.
std::vector<Event> without(std::vector<Event> events, size_t i);
std::vector<Event> moved(const std::vector<Event> &events, size_t i);

// A state, for messages.
std::string shown(const Tree &tree);

// The content of a folder of such files.
std::string folder_content(const std::map<std::string, std::string> &files);

}  // namespace yoke::test
