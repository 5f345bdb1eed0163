// relief.h: functions of the host program that may free memory when the allocator has no memory left. Collectors run
// the garbage collection of a script language; callbacks are the functions of yoke_on_out_of_memory.
//
// The functions run in the requesting thread, with no lock of the library held. A request made by such a function
// itself gets no relief.
#pragma once

#include "core/device/device.h"
#include "yoke/types.h"

namespace yoke {

enum class ReliefKind { kCollector, kCallback };

// Function that returns not 0 if memory may have come free. `bytes`: size of the request.
using ReliefFn = int32_t (*)(void *user, yoke_device *device, int64_t bytes);

// Adds a function and returns its number, from 1. `drop` runs once, after the function was removed and its last call
// has returned. Raises std::bad_alloc.
int64_t add_relief(ReliefKind kind, ReliefFn fn, void *user, yoke_drop_fn drop);
// Removes a function; its running calls go on. Returns false for a number that no function of the kind has.
bool remove_relief(ReliefKind kind, int64_t id);

// Calls all functions of a kind, in the order of adding; returns whether any result was not 0. Returns false at once
// in a thread already in such a function, or in a NoRelief scope.
bool ask_for_relief(ReliefKind kind, Device &device, uint64_t bytes) noexcept;

// Scope in which the thread does not ask the functions, for a held lock that the functions might need.
class NoRelief {
public:
    NoRelief() noexcept;
    ~NoRelief();
    NoRelief(const NoRelief &) = delete;
    NoRelief &operator=(const NoRelief &) = delete;

private:
    const bool before_;
};

}  // namespace yoke
