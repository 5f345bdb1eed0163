// Number of threads for CPU work.
#include "core/base/cgroup.h"
#include "core/base/config.h"
#include "core/base/error.h"
#include "core/base/thread_state.h"

#include <sched.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace yoke {

namespace {

constexpr int32_t kMaxThreads = 1024;

std::atomic<int32_t> process_threads{0};  // 0: not known yet

int32_t allowed_cores()
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
    return 1;  // more cores than cpu_set_t holds, or no /proc: one thread is never wrong
}

int32_t default_threads()
{
    if (const char *text = config("YOKE_NUM_THREADS")) return atoi(text);
    if (const int32_t threads = detail::leading_count(getenv("OMP_NUM_THREADS"))) return threads;
    return usable_processors();
}

}  // namespace

namespace detail {

int32_t leading_count(const char *text) noexcept
{
    if (!text) return 0;
    char *end = nullptr;
    const long threads = strtol(text, &end, 10);
    const bool good = end != text && (*end == '\0' || *end == ',') && threads > 0;
    return good ? static_cast<int32_t>(std::min<long>(threads, kMaxThreads)) : 0;
}

}  // namespace detail

int32_t usable_processors()
{
    const double quota = Groups::of_process().processors();
    const int32_t cores = allowed_cores();
    return quota > 0 ? std::clamp(static_cast<int32_t>(std::floor(quota)), 1, cores) : cores;
}

int32_t num_threads()
{
    if (const ThreadState *state = known_thread_state(); state && state->threads)
        return state->threads;
    int32_t threads = process_threads.load(std::memory_order_relaxed);
    if (threads == 0) {
        // A number set meanwhile by another thread stays.
        const int32_t found = default_threads();
        if (process_threads.compare_exchange_strong(threads, found)) threads = found;
    }
    return threads;
}

void set_num_threads(int32_t threads)
{
    if (threads < 0 || threads > kMaxThreads)
        fail(YOKE_E_VALUE, "set_num_threads: the number is %d; use 1 to %d, or 0 for the default",
             threads, kMaxThreads);
    process_threads.store(threads, std::memory_order_relaxed);
}

}  // namespace yoke
