// interrupt.h: the host program ends a wait early: Ctrl-C, and whatever else its language hears between two steps.
//
// A call that may wait long for others has an Interruptible in the thread that made it. Each wait in its scope asks the
// host ten times a second, with no lock held, and raises YOKE_E_CANCELLED once that says so; from then on it is not
// asked again, and what ends the call waits no longer than by itself. Threads of the library have none.
#pragma once

#include "core/base/deadline.h"
#include "core/base/error.h"

#include <condition_variable>
#include <mutex>

namespace yoke {

// Whether the host wants the calling thread's wait to end.
using InterruptFn = int32_t (*)(void *user);

// Takes the place of the former one, whose drop runs once, after its last call has returned. fn may be null.
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

    // What the call has made; raises where the host was heard though no wait ended by it.
    template <class T>
    T finished(T made) const
    {
        check();
        return made;
    }
    void check() const;
    // Raises where the calling thread's wait has ended by it, in other hands than the core's.
    static void check_here();

    // Whether waits of the calling thread can be interrupted, and whether it is time to ask.
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

// In its scope the calling thread runs what is the host's, and its waits ask nobody.
class Undisturbed {
public:
    Undisturbed() noexcept;
    ~Undisturbed();
    Undisturbed(const Undisturbed &) = delete;
    Undisturbed &operator=(const Undisturbed &) = delete;

private:
    Interruptible *const outer_;
};

// Asks where it is time to: whether the calling thread's wait is to end.
bool is_interrupted() noexcept;
// The same; raises Interrupted, once.
void check_interrupt();
// Until when a wait may sleep before it asks.
Deadline::Clock::time_point next_look(const Deadline &deadline) noexcept;
// The same for poll(), rounded up.
int next_look_ms(const Deadline &deadline) noexcept;

// Raises Interrupted.
void sleep_until(const Deadline &deadline);

// The lock is let go of meanwhile.
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

// As std::condition_variable has it; raises Interrupted.
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
