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
    // Handles events of the descriptor: EPOLLIN and so on.
    virtual void on_ready(uint32_t events) noexcept = 0;
    // Does periodic work, every tick_s seconds. `late_s` is the delay of the call: the process was stopped, or the
    // machine asleep.
    virtual void on_tick(double late_s) noexcept;
};

// Starts to watch an object, and returns the number of the watch. With fd -1, the object only ticks; with tick_s 0,
// it has only a descriptor. Raises YOKE_E_IO or YOKE_E_OOM if the system gives no descriptor or thread.
uint64_t watch(const std::shared_ptr<Watched> &what, int fd, uint32_t events, double tick_s);
// Changes the awaited events of the descriptor.
void rewatch(uint64_t number, uint32_t events) noexcept;
// Stops the watch with this number; 0 means no watch. After the return, no function of the object runs, and the
// descriptor may be closed. In the watch thread, the current function still runs to its end.
void unwatch(uint64_t number) noexcept;
// Waits until the function that runs in the watch thread now has ended, even if its object is no longer watched.
// Returns at once in the watch thread.
void settle_watch() noexcept;
bool is_watch_thread() noexcept;

}  // namespace yoke
