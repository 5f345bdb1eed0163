// work.h: what goes on after the call that began it has returned: who began it may wait for its end, and learns how it
// ended.
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
    // `of` bytes are to be done. A tail that the work has from its begin may be followed before the host's part ends.
    static Ref<Work> begin(uint64_t of, std::unique_ptr<Tail> tail = nullptr);

    // For whoever does it; finish comes once, with what it failed with or null. While a Doing lives, its thread does
    // the work: what runs there on behalf of others, such as the end of memory that a host brought, must not wait for
    // it.
    class Doing {
    public:
        explicit Doing(const Work &work) noexcept;
        ~Doing();
        Doing(const Doing &) = delete;
        Doing &operator=(const Doing &) = delete;
    };
    bool is_done_here() const noexcept;
    // Not begun before another call of the same thread's: waiting before that is YOKE_E_STATE.
    void hold(bool is_held) noexcept { held_.store(is_held, std::memory_order_relaxed); }
    void advance(uint64_t bytes) noexcept { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
    // What a device has still to do of it when the host has done its part.
    class Tail {
    public:
        virtual ~Tail() = default;
        virtual bool is_reached() noexcept = 0;
        // At most `seconds`. Whether the device has done it; raises what it failed with.
        virtual bool wait(double seconds) = 0;
        // Whether the device has been given the work; of an early tail it may not have been yet.
        virtual bool is_given() const noexcept { return true; }
        // What the calling thread gives to its current stream from now on comes behind it.
        virtual void follow() = 0;
        // Whoever waits has learnt what the work failed with.
        virtual void note_told() noexcept = 0;
    };
    // `tail`: of a work that has had none.
    void finish(std::exception_ptr failure, std::unique_ptr<Tail> tail = nullptr) noexcept;

    bool is_done() const noexcept;
    uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
    uint64_t of() const noexcept { return of_; }
    // At most `seconds`, below 0: as long as it takes. Whether it has ended; raises what it failed with, each time. A
    // forked child is not where it goes on: YOKE_E_FORKED. Nor can the thread wait that does it: YOKE_E_STATE. Where
    // the host interrupts the wait (core/base/interrupt.h) the work goes on.
    bool wait(double seconds);
    // The same, but a tail is followed, not waited for; so does wait below 0.
    bool follow(double seconds);
    // The same of the host's part, and raises nothing; false at once in the thread that does it.
    bool wait_for_end(double seconds) noexcept;
    // What it failed with if wait has told nobody; from now on it counts as told.
    std::exception_ptr take_untold() noexcept;

private:
    Work(uint64_t of, std::unique_ptr<Tail> tail);
    ~Work() override;
    // A forked child's stays where others wait for it: it does not have their threads.
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
        failure_;  // these two are written before done_; an early tail, before anybody has the work
    std::unique_ptr<Tail> tail_;
};

}  // namespace yoke
