#include "core/base/interrupt.h"

#include "core/base/host_hook.h"
#include "core/base/immortal.h"

#include <thread>
#include <utility>

namespace yoke {

namespace {

HostHook<InterruptFn> &hook = immortal<HostHook<InterruptFn>>();

constexpr std::chrono::milliseconds kBetweenLooks{100};  // between two looks

thread_local Interruptible *here = nullptr;

[[noreturn]] void raise_interrupted(const char *call)
{
    throw Interrupted(YOKE_E_CANCELLED,
                      format("%s: the program was interrupted while it waited", call));
}

}  // namespace

void set_interrupt_hook(InterruptFn fn, void *user, yoke_drop_fn drop)
{
    hook.set(fn, user, drop);
}

Interruptible::Interruptible(const char *call) noexcept
    : call_(call), outer_(std::exchange(here, this)), next_(Deadline::Clock::now() + kBetweenLooks)
{
}

Interruptible::~Interruptible()
{
    here = outer_;
}

void Interruptible::check() const
{
    if (is_heard_) raise_interrupted(call_);
}

void Interruptible::check_here()
{
    if (here) here->check();
}

bool Interruptible::is_open() noexcept
{
    return here && !here->is_heard_ && hook.is_set();
}

bool Interruptible::is_due() noexcept
{
    return is_open() && Deadline::Clock::now() >= here->next_;
}

Undisturbed::Undisturbed() noexcept : outer_(std::exchange(here, nullptr)) {}

Undisturbed::~Undisturbed()
{
    here = outer_;
}

bool is_interrupted() noexcept
{
    Interruptible *const asked = here;
    if (!Interruptible::is_due()) return asked && asked->is_heard_;
    {
        const Undisturbed host;  // a handler may call the library
        asked->is_heard_ = hook.ask() != 0;
    }
    asked->next_ = Deadline::Clock::now() + kBetweenLooks;
    return asked->is_heard_;
}

void check_interrupt()
{
    if (Interruptible::is_due() && is_interrupted()) raise_interrupted(here->call_);
}

Deadline::Clock::time_point next_look(const Deadline &deadline) noexcept
{
    return Interruptible::is_open() ? std::min(deadline.at(), here->next_) : deadline.at();
}

int next_look_ms(const Deadline &deadline) noexcept
{
    const std::chrono::duration<double> left = next_look(deadline) - Deadline::Clock::now();
    return deadline.within(left.count()).remaining_ms();
}

void sleep_until(const Deadline &deadline)
{
    while (!deadline.has_passed()) {
        std::this_thread::sleep_until(next_look(deadline));
        check_interrupt();
    }
}

}  // namespace yoke
