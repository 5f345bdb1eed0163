// lease.h: a card held for one process, against all other processes that ask before they take a card.
//
// A lease is an exclusive flock() on a file of the lease folder. Each card has one file, named after its UUID. The
// lock is the lease: the kernel ends it with the process, however the process ends. The file stays, without a
// meaning. Files are never removed, since a process might hold the lock of a removed file. The pid in a file serves
// only for messages.
//
// A lock of this kind belongs to the open file, and would be shared by fork() and exec(). So the files close on exec,
// and a forked child closes its copies first of all. The lease stays the parent's.
#pragma once

#include "core/select/lease_folder.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace yoke {

// Takes the lease of a card. Returns true if this process holds the lease now, already or anew, and false if another
// process holds it. Raises YOKE_E_IO like lease_folder(), and YOKE_E_VALUE for an invalid name.
bool take_lease(std::string_view card);

// Gives the lease up, however often it was taken. Without a lease, there is no effect.
void drop_lease(std::string_view card) noexcept;

// Undoes one take_lease(). The process keeps the lease until every take_lease() is undone, so one thread cannot end a
// lease that another thread needs.
void return_lease(std::string_view card) noexcept;

bool holds_lease(std::string_view card) noexcept;

// Returns the process with the lease: 0 for none, -1 for an unknown process. This process counts too. Takes no lease,
// and never keeps another process from taking a lease. Raises like take_lease(); a missing folder means no lease.
int32_t lease_holder(std::string_view card);

namespace detail {
// Returns the name of a card's file: a UUID without "GPU-" or "MIG-", in lower case. Raises YOKE_E_VALUE for an empty
// or too long name.
std::string lease_name(std::string_view card);

// Returns the pid with the lock of a file, by the text of /proc/locks; 0 if not listed.
int32_t holder_in(const std::string &locks, uint64_t device, uint64_t inode);
}  // namespace detail

}  // namespace yoke
