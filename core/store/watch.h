// watch.h: the one thread of a process that waits for what comes from other processes, and for time to pass.
//
// It is made at first need and stays. A forked child has none of it: what its parent watched is forgotten there.
#pragma once

#include "core/base/deadline.h"

#include <cstdint>
#include <memory>

namespace yoke {

// Something that is watched. Its functions run in the watch thread, one at a time of all that is watched; they do not
// wait, and raise nothing.
class Watched {
public:
    virtual ~Watched() = default;
    // EPOLLIN and so on, of its descriptor.
    virtual void on_ready(uint32_t events) noexcept = 0;
    // Every so many seconds; `late_s` is by how much it comes too late: the process was stopped, or the machine asleep.
    virtual void on_tick(double late_s) noexcept;
};

// Starts to watch; fd may be -1 for what only ticks, tick_s 0 for what only has a descriptor. Its number.
uint64_t watch(const std::shared_ptr<Watched> &what, int fd, uint32_t events, double tick_s);
// Other events of its descriptor from now on.
void rewatch(uint64_t number, uint32_t events) noexcept;
// Once it returns nothing of it runs, and it may close its descriptor; except in the watch thread, where it ends after
// the function that called.
void unwatch(uint64_t number) noexcept;
// Once it returns whatever ran in the watch thread has ended, also of what is not watched any more; but in that thread.
void settle_watch() noexcept;
bool is_watch_thread() noexcept;

}  // namespace yoke
