#include "core/base/work.h"

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/base/interrupt.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace yoke {

namespace {

thread_local const Work *done_here = nullptr;

}  // namespace

Work::Doing::Doing(const Work &work) noexcept
{
    done_here = &work;
}

Work::Doing::~Doing()
{
    done_here = nullptr;
}

bool Work::is_done_here() const noexcept
{
    return done_here == this;
}

Work::Work(uint64_t of, std::unique_ptr<Tail> tail)
    : of_(of), process_(getpid()), has_early_tail_(tail != nullptr), tail_(std::move(tail))
{
}

Work::~Work() = default;

Ref<Work> Work::begin(uint64_t of, std::unique_ptr<Tail> tail)
{
    return Ref<Work>::adopt(new Work(of, std::move(tail)));
}

void Work::destroy() noexcept
{
    if (!is_elsewhere()) delete this;
}

bool Work::has_ended() const noexcept
{
    return done_.load(std::memory_order_acquire);
}

// Returns whether the working thread, and thus the lock's holder, is in the parent process.
bool Work::is_elsewhere() const noexcept
{
    return !has_ended() && process_ != getpid();
}

bool Work::is_done() const noexcept
{
    return has_ended() ? !tail_ || tail_->is_reached() : is_elsewhere();
}

void Work::finish(std::exception_ptr failure, std::unique_ptr<Tail> tail) noexcept
{
    const std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
    if (tail) tail_ = std::move(tail);
    done_.store(true, std::memory_order_release);
    ended_.notify_all();
}

// Waits as wait_for_end() does. Raises Interrupted if the host program interrupts the wait; the work goes on.
bool Work::wait_interruptibly(double seconds)
{
    if (!Interruptible::is_open() || has_ended()) return wait_for_end(seconds);
    const Deadline deadline = seconds < 0 ? Deadline::never() : Deadline::after(seconds);
    std::unique_lock lock(mutex_);
    return wait_until(ended_, lock, deadline, [this] { return has_ended(); });
}

bool Work::wait_for_end(double seconds) noexcept
{
    constexpr double kLongest = 1e9;  // clocks end somewhere
    if (has_ended() || is_elsewhere()) return true;
    if (is_done_here()) return false;
    std::unique_lock lock(mutex_);
    const auto has_ended = [this] { return this->has_ended(); };
    if (seconds < 0)
        ended_.wait(lock, has_ended);
    else
        ended_.wait_for(lock, std::chrono::duration<double>(std::min(seconds, kLongest)),
                        has_ended);
    return this->has_ended();
}

std::exception_ptr Work::take_untold() noexcept
{
    if (!has_ended() || told_.exchange(true)) return nullptr;
    return failure_;
}

void Work::check_can_wait() const
{
    if (is_elsewhere())
        fail(
            YOKE_E_FORKED,
            "wait: this work runs in process %d, and this process is a forked child; wait in the process that started the work",
            static_cast<int>(process_));
    if (!has_ended() && is_done_here())
        fail(
            YOKE_E_STATE,
            "wait: this thread runs the work itself, so the wait would never end; wait in another thread, and not while memory of the work is released");
    if (!has_ended() && held_.load(std::memory_order_relaxed))
        fail(
            YOKE_E_STATE,
            "wait: the call of this work is issued at the end of its coalesce; wait after the coalesce");
}

bool Work::wait_on_host(double seconds)
{
    check_can_wait();
    if (!wait_interruptibly(seconds)) return false;
    told_.store(true);
    if (failure_ && tail_) tail_->note_told();
    if (failure_) std::rethrow_exception(failure_);
    return true;
}

bool Work::wait(double seconds)
{
    if (seconds < 0) return follow(seconds);
    const Deadline deadline = Deadline::after(seconds);
    return wait_on_host(seconds) && (!tail_ || wait_for_tail(deadline));
}

bool Work::wait_for_tail(Deadline deadline)
{
    for (;;) {
        const std::chrono::duration<double> left = next_look(deadline) - Deadline::Clock::now();
        if (tail_->wait(std::max(left.count(), 0.))) return true;
        if (deadline.has_passed()) return false;
        check_interrupt();
    }
}

bool Work::follow(double seconds)
{
    if (has_early_tail_ && seconds < 0 && !has_ended() && tail_->is_given()) {
        check_can_wait();
        tail_->follow();
        return true;
    }
    if (!wait_on_host(seconds)) return false;
    if (tail_) tail_->follow();
    return true;
}

}  // namespace yoke
