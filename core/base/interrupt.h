// interrupt.h: lets the host program end a wait early, on Ctrl-C or other events that its language handles between
// steps.
//
// A call that may wait long has an Interruptible in the calling thread. Each wait in its scope asks the host program
// ten times a second, with no lock held. When the host program says yes, the wait raises YOKE_E_CANCELLED. Afterwards
// the waits ask no more, and the end of the call waits only as long as usual. Threads of the library have no
// Interruptible.
#pragma once

#include "core/base/deadline.h"
#include "core/base/error.h"

#include <condition_variable>
#include <mutex>

namespace yoke {

// Returns whether the host program wants the calling thread's wait to end.
using InterruptFn = int32_t (*)(void *user);

// Sets the function that waits ask. The drop of the former function runs once, after its last call has returned. fn
// may be null.
void set_interrupt_hook(InterruptFn fn, void *user, yoke_drop_fn drop);

class Interrupted final : public Error {
public:
    using Error::Error;
};

class Interruptible {
public:
    explicit Interruptible(const char *call) noexcept;
    ~Interruptible();
    Interruptible(const Interruptible &) = delete;
    Interruptible &operator=(const Interruptible &) = delete;

    // Returns the call's result `made`. Raises Interrupted if the host program asked for an interrupt, although no
    // wait ended early.
    template <class T>
    T finished(T made) const
    {
        check();
        return made;
    }
    void check() const;
    // Raises Interrupted if an interrupt has ended a wait of the calling thread in code that is not the core's.
    static void check_here();

    // Returns whether waits of the calling thread can be interrupted. is_due() returns whether it is also time to
    // ask.
    static bool is_open() noexcept;
    static bool is_due() noexcept;

private:
    friend bool is_interrupted() noexcept;
    friend void check_interrupt();
    friend Deadline::Clock::time_point next_look(const Deadline &deadline) noexcept;
    friend class Undisturbed;
    const char *const call_;
    Interruptible *const outer_;
    Deadline::Clock::time_point next_;
    bool is_heard_ = false;
};

// Scope in which the calling thread runs code of the host program, and waits are not interruptible.
class Undisturbed {
public:
    Undisturbed() noexcept;
    ~Undisturbed();
    Undisturbed(const Undisturbed &) = delete;
    Undisturbed &operator=(const Undisturbed &) = delete;

private:
    Interruptible *const outer_;
};

// Returns whether the calling thread's wait is to end. Asks the host program if it is time to ask.
bool is_interrupted() noexcept;
// Asks the host program if it is time to ask. Raises Interrupted if the host program says yes, only once in an
// Interruptible.
void check_interrupt();
// Returns the time until which a wait may sleep before it asks: at most the deadline.
Deadline::Clock::time_point next_look(const Deadline &deadline) noexcept;
// Returns the time until next_look() for poll(), rounded up.
int next_look_ms(const Deadline &deadline) noexcept;

// Sleeps until the deadline. Raises Interrupted if the host program interrupts the sleep.
void sleep_until(const Deadline &deadline);

// Calls check_interrupt() if it is time to ask, and releases the lock meanwhile.
template <class Lock>
void check_interrupt(Lock &lock)
{
    if (!Interruptible::is_due()) return;
    struct Without {
        explicit Without(Lock &of) : lock(of) { lock.unlock(); }
        ~Without() { lock.lock(); }
        Lock &lock;
    } without(lock);
    check_interrupt();
}

// Waits until `is_ready`; returns false if the deadline passes before. Raises Interrupted if the host program
// interrupts the wait.
template <class Ready>
bool wait_until(std::condition_variable &changed, std::unique_lock<std::mutex> &lock,
                const Deadline &deadline, Ready &&is_ready)
{
    while (!is_ready()) {
        if (deadline.has_passed()) return false;
        changed.wait_until(lock, next_look(deadline));
        check_interrupt(lock);
    }
    return true;
}

}  // namespace yoke
