// turn.h: lets an object that serves a single thread report a second thread, instead of breaking.
#pragma once

#include "core/base/error.h"

#include <atomic>

namespace yoke {

// A member of the object.
class Turns {
    friend class Turn;
    std::atomic<bool> taken_{false};
};

// Claim of the calling thread to the object, without waiting. Raises YOKE_E_STATE if another thread is inside.
class Turn {
public:
    Turn(Turns &turns, const char *call, const char *what) : turns_(turns)
    {
        if (turns.taken_.exchange(true, std::memory_order_acquire)) [[unlikely]]
            fail(
                YOKE_E_STATE,
                "%s: another thread is inside a call of this %s; use a separate object in each thread, or guard the calls with a lock",
                call, what);
    }
    ~Turn() { turns_.taken_.store(false, std::memory_order_release); }
    Turn(const Turn &) = delete;
    Turn &operator=(const Turn &) = delete;

private:
    Turns &turns_;
};

}  // namespace yoke
