// relief.h: functions of the host program that may free memory when the allocator has none left. Collectors run the
// garbage collection of a script language; callbacks are those of yoke_on_out_of_memory.
//
// They run in the thread that asks for memory, with no lock of the library's held. A request that such a function makes
// itself gets no help from them.
#pragma once

#include "core/device/device.h"
#include "yoke/types.h"

namespace yoke {

enum class ReliefKind { kCollector, kCallback };

// Returns not 0 where memory may have come free. `bytes` are those of the request.
using ReliefFn = int32_t (*)(void *user, yoke_device *device, int64_t bytes);

// Adds a function and returns its number, from 1. `drop` runs once, after the function was removed and its last call
// has returned. Raises std::bad_alloc.
int64_t add_relief(ReliefKind kind, ReliefFn fn, void *user, yoke_drop_fn drop);
// Returns false for a number that no function of the kind has.
bool remove_relief(ReliefKind kind, int64_t id);

// Calls all functions of a kind, in the order in which they were added; returns whether any gave not 0.
bool ask_for_relief(ReliefKind kind, Device &device, uint64_t bytes) noexcept;

// Keeps the functions from being asked in the thread, where a lock is held that they might want.
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
