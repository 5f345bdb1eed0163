// temporary.h: entries that a writer makes beside its target until they are complete, and leftovers of killed
// writers.
#pragma once

#include "core/state/file_calls.h"

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// Name beside `target`, `.TARGET.yoke-PID-RANDOM.tmp`, and its entry. The destructor removes an entry still there.
// After a kill, the next writer of the same target sees by the name that the former writer is dead.
class Temporary {
public:
    Temporary(const Descriptor &folder, std::string_view target);
    ~Temporary();
    Temporary(const Temporary &) = delete;
    Temporary &operator=(const Temporary &) = delete;

    const char *name() const;
    std::string digits() const;  // returns the first eight digits of RANDOM
    // Makes a folder of this name. Returns 0 or an errno.
    int make_folder();
    void made() { is_there_ = true; }
    void gone() { is_there_ = false; }

private:
    const Descriptor &folder_;
    std::string name_;
    pid_t owner_;  // a forked child does not remove the entry
    bool is_there_ = false;
};

// Removes an entry with all contents, as far as possible. Returns 0, or the errno of the first failure. In a folder,
// the manifest goes last: without a manifest, the folder would count as another program's.
int remove_entry(const Descriptor &folder, const char *name);

// Removes leftovers of dead writers beside a target. An empty `name` matches any target. Entries that cannot be
// removed stay.
void remove_leftovers(const std::string &folder, std::string_view name);
void remove_leftovers(const Descriptor &folder, std::string_view name);
// Removes leftovers of any target among a folder's entries.
void remove_leftovers(const Descriptor &folder, const std::vector<std::string> &entries);

// Returns the digits of the temporaries among a folder's entries with a live writer. An empty target matches any
// target.
std::set<std::string, std::less<>> digits_of_writers(const std::vector<std::string> &entries,
                                                     std::string_view target);
// Returns whether the name is a temporary of the target, with a live writer or not.
bool is_temporary_of(std::string_view name, std::string_view target);

}  // namespace yoke
