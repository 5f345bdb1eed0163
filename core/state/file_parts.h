// file_parts.h: what the files beside files.cpp share.
#pragma once

#include "core/state/files.h"

#include <cerrno>
#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace yoke {

// The most that one call reads: the system gives little more.
inline constexpr size_t kMostAtOnce = size_t{1} << 30;

// Makes a call again that a signal interrupted before it did anything.
template <class Call>
auto retried(const Call &call)
{
    auto result = call();
    while (result < 0 && errno == EINTR) result = call();
    return result;
}

struct Place {
    std::string folder, name;
};
// "a/b" is "b" in "a", "b" is in ".", and a name at the end of which a slash stands is "".
Place place_of(const std::string &path);

// The path that a path is in the end, where links lead; what is there, if anything, is a file. A status of mode 0 where
// nothing is.
std::string target_of(const char *call, std::string path, struct stat *status);

// Not open, and errno, where it cannot be opened; the other one raises.
Descriptor opened_folder(const std::string &path);
Descriptor open_folder(const char *call, const std::string &path);

// 0 or an errno; 0 also where the file system has no such call, which is noted.
int sync_file(const Descriptor &file);
int sync_folder(const Descriptor &folder);
// 0 or an errno.
int rename_in(const Descriptor &folder, const char *from, const std::string &to);

// Raises what a rename into its place failed with.
[[noreturn]] void fail_move(const char *call, const std::string &path, int error);

// Removes an entry with all that is in it, as far as that goes; 0 or the errno of what failed first. Of a folder the
// manifest goes last, without which it would count as somebody else's.
int remove_entry(const Descriptor &folder, const char *name);

void remove_leftovers(const Descriptor &folder, std::string_view name);

// Of the temporaries of a target, or of all where it is empty, among the entries of a folder, the digits of those whose
// writers live.
std::set<std::string, std::less<>> digits_of_writers(const std::vector<std::string> &entries,
                                                     std::string_view target);
// Whether it is one of them, or would be one if its writer lived.
bool is_temporary_of(std::string_view name, std::string_view target);

}  // namespace yoke
