// lease_folder.h: the folder of leases: found, made, and waited for while another user makes it.
#pragma once

#include <string>
#include <string_view>

namespace yoke {

// Returns the folder: YOKE_LEASE_DIR, else the usual folder, the same for every user of the machine. If missing,
// makes it for all users (1777). Raises YOKE_E_IO with the folder and the remedy.
std::string lease_folder();

// Warns, once, if processes of other containers do not see the folder. `container` is the inventory's.
void warn_of_private_leases(std::string_view container);

namespace detail {

// Returns the folder of leases unless YOKE_LEASE_DIR says otherwise: /run/lock/yoke if all may write there or may
// make it, else /tmp/yoke-leases. Makes nothing. `root` stands before both.
std::string usual_lease_folder(const std::string &root = "");

// Returns whether a folder's mount belongs to this container alone, by the text of /proc/self/mountinfo: the
// container's root, or memory mounted for the container.
bool is_private_mount(const std::string &mountinfo, const std::string &folder);

// Wait for a new file or folder of another user. It is closed to this user for the instant until its mode is set,
// because the umask takes bits away first.
class Opening {
public:
    // Pauses, then returns true while the entry at the path is new enough.
    bool may_come(const std::string &path);

private:
    int pauses_ = 0;
};

// Returns the folder. With `make`, makes a missing folder; without, returns "". Raises YOKE_E_IO if the folder cannot
// be used.
std::string find_lease_folder(bool make);

}  // namespace detail

}  // namespace yoke
