// watch.h: the single thread of a process that waits for messages from other processes, and for time to pass.
//
// The thread is made at first need and stays. A forked child has no such thread, and forgets the objects watched by
// its parent.
#pragma once

#include "core/base/deadline.h"

#include <cstdint>
#include <memory>

namespace yoke {

// Watched object. The watch thread runs the functions of all watched objects in sequence. They do not wait, and raise
// no exception.
class Watched {
public:
    virtual ~Watched() = default;
    // EPOLLIN and so on, from the descriptor.
    virtual void on_ready(uint32_t events) noexcept = 0;
    // Every so many seconds; `late_s` is by how much it comes too late: the process was stopped, or the machine asleep.
    virtual void on_tick(double late_s) noexcept;
};

// Starts to watch and returns the number. With fd -1, the object only ticks; with tick_s 0, it has only a descriptor.
uint64_t watch(const std::shared_ptr<Watched> &what, int fd, uint32_t events, double tick_s);
// Changes the awaited events of the descriptor.
void rewatch(uint64_t number, uint32_t events) noexcept;
// Stops the watch. After the return, no function of the object runs, and the descriptor may be closed. In the watch
// thread, the current function still runs to its end.
void unwatch(uint64_t number) noexcept;
// Waits until the function running in the watch thread has ended, even of an object no longer watched. In the watch
// thread, it does not wait.
void settle_watch() noexcept;
bool is_watch_thread() noexcept;

}  // namespace yoke
