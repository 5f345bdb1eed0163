// lease_folder.h: the folder of leases: found, made, and waited for while another user makes it.
#pragma once

#include <string>
#include <string_view>

namespace yoke {

// The folder: YOKE_LEASE_DIR, else the usual one, which is the same for every user of the machine. Made for all users
// (1777) where it does not exist. Raises YOKE_E_IO naming it and what to do.
std::string lease_folder();

// Warns, once, if processes of other containers do not see the folder. `container` is the inventory's.
void warn_of_private_leases(std::string_view container);

namespace detail {

// Where leases lie unless YOKE_LEASE_DIR says otherwise: /run/lock/yoke if all may write there or may make it, else
// /tmp/yoke-leases. Makes nothing. `root` stands before both.
std::string usual_lease_folder(const std::string &root = "");

// Whether the mount on which a folder lies is of this container alone, by the text of /proc/self/mountinfo: its root,
// or memory that was mounted for it.
bool is_private_mount(const std::string &mountinfo, const std::string &folder);

// What another user makes is closed to us for the instant until its mode is set, which gives back what the umask took.
class Opening {
public:
    // True, after a pause, while what lies at the path is young enough for that.
    bool may_come(const std::string &path);

private:
    int pauses_ = 0;
};

// The folder, made with `make`; without, "" where there is none.
std::string find_lease_folder(bool make);

}  // namespace detail

}  // namespace yoke
