// lease_folder.h: the folder of leases as lease.cpp uses it: found, made, and waited for while another user makes it.
#pragma once

#include <string>

namespace yoke::detail {

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

}  // namespace yoke::detail
