// lease.h: a card held for one process, against all others that ask before they take one.
//
// A lease is an exclusive flock() on a file of the lease folder, one file for each card, named after its UUID. The lock
// is the lease: the kernel ends it with the process, however that ends, and the file stays behind meaning nothing.
// Files are never removed, since a process might hold the lock of one that was. The pid written into a file serves
// messages alone.
//
// A lock of this kind belongs to the open file, which fork() shares and exec() would: so the files close on exec, and a
// forked child closes its copies before it does anything else. The lease stays the parent's.
#pragma once

#include "core/select/lease_folder.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace yoke {

// Takes the lease of a card; true if this process holds it now, already or anew. False: another process holds it.
// Raises YOKE_E_IO as above, YOKE_E_VALUE for a name that is none.
bool take_lease(std::string_view card);

// Gives it up, however often it was taken; without one nothing happens.
void drop_lease(std::string_view card) noexcept;

// Takes one take_lease() back: the lease ends with the last of them, so that who needs it after all does not lose it to
// another thread that changes its mind.
void return_lease(std::string_view card) noexcept;

bool holds_lease(std::string_view card) noexcept;

// The process that holds it: 0 for none, -1 if it cannot be named. This process counts too. Takes no lease and never
// keeps another process from taking one. Raises as above; a folder that does not exist holds no lease.
int32_t lease_holder(std::string_view card);

namespace detail {
// The name of a card's file: a UUID without "GPU-" or "MIG-", in lower case.
std::string lease_name(std::string_view card);

// The pid that has the lock of a file, by the text of /proc/locks; 0 if none is found there.
int32_t holder_in(const std::string &locks, uint64_t device, uint64_t inode);
}  // namespace detail

}  // namespace yoke
