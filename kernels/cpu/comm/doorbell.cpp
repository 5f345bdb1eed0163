#include "kernels/cpu/comm/doorbell.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace yoke::cpu::comm {

// Calls futex on a word in shared memory. The call is not private, because the waiters are in other processes.
static void futex(std::atomic<uint32_t> &word, int call, uint32_t value, const timespec *timeout)
{
    syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), call, value, timeout, nullptr, 0);
}

void wake_event(int event)
{
    const uint64_t one = 1;
    // If the counter is full, the rank is already awake.
    while (write(event, &one, sizeof one) < 0 && errno == EINTR) {
    }
}

void drain_event(int event)
{
    uint64_t count;
    while (read(event, &count, sizeof count) < 0 && errno == EINTR) {
    }
}

void ring_always(Bell &bell)
{
    bell.rings.fetch_add(1);
    futex(bell.rings, FUTEX_WAKE, INT_MAX, nullptr);
}

void ring(Bell &bell, uint32_t what, int event)
{
    const uint32_t sleeps = bell.sleeps.load();
    if (!(sleeps & what)) return;
    if (sleeps & kByEvent)
        wake_event(event);
    else
        ring_always(bell);
}

uint32_t lie_down(Bell &bell, uint32_t what)
{
    const uint32_t rings = bell.rings.load();
    bell.sleeps.exchange(what);
    return rings;
}

void get_up(Bell &bell)
{
    bell.sleeps.store(0, std::memory_order_relaxed);
}

void sleep_in_futex(Bell &bell, uint32_t rings, int64_t nanoseconds)
{
    const timespec most = {static_cast<time_t>(nanoseconds / 1'000'000'000),
                           static_cast<long>(nanoseconds % 1'000'000'000)};
    futex(bell.rings, FUTEX_WAIT, rings, &most);
}

}  // namespace yoke::cpu::comm
