// work.h: work that goes on after the beginning call has returned. The caller may wait for the end, and learns the
// result.
#pragma once

#include "core/base/deadline.h"
#include "core/base/refcount.h"

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>

namespace yoke {

class Work final : public RefCounted {
public:
    class Tail;
    // Begins a work of `of` bytes. If the work has a tail from the beginning, callers may follow the tail before the
    // host's part ends.
    static Ref<Work> begin(uint64_t of, std::unique_ptr<Tail> tail = nullptr);

    // Scope in which its thread does the work. Code run there for others, such as the end of a host program's memory,
    // must not wait for the work. finish comes once, with the failure or null.
    class Doing {
    public:
        explicit Doing(const Work &work) noexcept;
        ~Doing();
        Doing(const Doing &) = delete;
        Doing &operator=(const Doing &) = delete;
    };
    bool is_done_here() const noexcept;
    // Sets whether the work waits for the end of a coalesce. Waiting for a held work raises YOKE_E_STATE.
    void hold(bool is_held) noexcept { held_.store(is_held, std::memory_order_relaxed); }
    void advance(uint64_t bytes) noexcept { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
    // Rest of the work on a device, after the host's part.
    class Tail {
    public:
        virtual ~Tail() = default;
        virtual bool is_reached() noexcept = 0;
        // Waits at most `seconds`. Returns whether the device has done the work; raises the device's failure.
        virtual bool wait(double seconds) = 0;
        // Returns whether the device has been given the work; an early tail may exist before.
        virtual bool is_given() const noexcept { return true; }
        // Orders later work on the calling thread's current stream behind the tail.
        virtual void follow() = 0;
        // Notes that a waiting caller has got the failure.
        virtual void note_told() noexcept = 0;
    };
    // Ends the host's part with its failure, or null, and wakes the waiting callers. `tail` is for a work without an
    // early tail.
    void finish(std::exception_ptr failure, std::unique_ptr<Tail> tail = nullptr) noexcept;

    bool is_done() const noexcept;
    uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
    uint64_t of() const noexcept { return of_; }
    // Waits at most `seconds` for the end of the work; below 0: calls follow(). Returns whether the work has ended;
    // raises its failure, each time. In a forked child, the work does not go on: YOKE_E_FORKED. In the working
    // thread: YOKE_E_STATE. If the host program interrupts the wait (core/base/interrupt.h), the work goes on.
    bool wait(double seconds);
    // Waits at most `seconds` for the host's part (below 0: without limit) and follows a tail instead of waiting for
    // the tail. Below 0, does not wait if an early tail has been given its work. Returns and raises as wait() does.
    bool follow(double seconds);
    // Waits for the host's part only, and raises nothing. Returns whether it has ended; false at once in the working
    // thread, true in a forked child.
    bool wait_for_end(double seconds) noexcept;
    // Returns the failure if no wait has reported it yet; afterwards it counts as reported.
    std::exception_ptr take_untold() noexcept;

private:
    Work(uint64_t of, std::unique_ptr<Tail> tail);
    ~Work() override;
    // Deletes the object. In a forked child, keeps it if the work had not ended at the fork: a thread of the parent
    // may hold the lock.
    void destroy() noexcept override;
    bool has_ended() const noexcept;
    bool is_elsewhere() const noexcept;
    void check_can_wait() const;
    bool wait_on_host(double seconds);
    bool wait_interruptibly(double seconds);
    bool wait_for_tail(Deadline deadline);

    const uint64_t of_;
    const pid_t process_;
    const bool has_early_tail_;
    std::atomic<uint64_t> bytes_{0};
    std::atomic<bool> done_{false}, told_{false}, held_{false};
    std::mutex mutex_;
    std::condition_variable ended_;
    std::exception_ptr
        failure_;  // failure_ and tail_ are written before done_; an early tail, before any caller has the work
    std::unique_ptr<Tail> tail_;
};

}  // namespace yoke
