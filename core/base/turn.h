// turn.h: an object that serves one thread at a time tells a second one so, instead of tearing.
#pragma once

#include "core/base/error.h"

#include <atomic>

namespace yoke {

// A member of the object.
class Turns {
    friend class Turn;
    std::atomic<bool> taken_{false};
};

// While it lives, the object is the calling thread's. Nobody waits: raises YOKE_E_STATE where another thread is inside.
class Turn {
public:
    Turn(Turns &turns, const char *call, const char *what) : turns_(turns)
    {
        if (turns.taken_.exchange(true, std::memory_order_acquire)) [[unlikely]]
            fail(
                YOKE_E_STATE,
                "%s: another thread is inside a call of this %s; give each thread one of its own, or let a lock of yours order them",
                call, what);
    }
    ~Turn() { turns_.taken_.store(false, std::memory_order_release); }
    Turn(const Turn &) = delete;
    Turn &operator=(const Turn &) = delete;

private:
    Turns &turns_;
};

}  // namespace yoke
