// temporary.h: what a writer makes beside its target until all of it is there, and what killed writers left.
#pragma once

#include "core/state/file_calls.h"

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// A name beside `target`, `.TARGET.yoke-PID-RANDOM.tmp`, and what stands there. What is still there at the end goes;
// after a kill the next one that writes the same target finds by the name that its writer is no more.
class Temporary {
public:
    Temporary(const Descriptor &folder, std::string_view target);
    ~Temporary();
    Temporary(const Temporary &) = delete;
    Temporary &operator=(const Temporary &) = delete;

    const char *name() const;
    std::string digits() const;  // the first eight of RANDOM
    // Makes a folder of that name: 0 or an errno.
    int make_folder();
    void made() { is_there_ = true; }
    void gone() { is_there_ = false; }

private:
    const Descriptor &folder_;
    std::string name_;
    pid_t owner_;  // a forked child leaves it alone
    bool is_there_ = false;
};

// Removes an entry with all that is in it, as far as that goes; 0 or the errno of what failed first. Of a folder the
// manifest goes last, without which it would count as somebody else's.
int remove_entry(const Descriptor &folder, const char *name);

// Removes what writers that are no more left beside a target, or beside any target where `name` is empty. What cannot
// be removed stays.
void remove_leftovers(const std::string &folder, std::string_view name);
void remove_leftovers(const Descriptor &folder, std::string_view name);
// Removes those of any target among the entries of a folder.
void remove_leftovers(const Descriptor &folder, const std::vector<std::string> &entries);

// Returns, of the temporaries of a target (of all where it is empty) among the entries of a folder, the digits of those
// whose writers live.
std::set<std::string, std::less<>> digits_of_writers(const std::vector<std::string> &entries,
                                                     std::string_view target);
// Whether it is one of them, or would be one if its writer lived.
bool is_temporary_of(std::string_view name, std::string_view target);

}  // namespace yoke
