// The thread team. Every host thread sets its own OpenMP team first, so that oneDNN, which asks OpenMP, obeys the
// host's thread count as well. OpenMP never runs after fork, nor for a team of one.
#include <atomic>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "kernels/cpu/cpu.h"

namespace yoke::cpu {

static std::atomic<bool> g_forked{false};

void threads_after_fork()
{
    g_forked.store(true, std::memory_order_relaxed);
}

#ifdef _OPENMP

void set_team(int threads)
{
    // Compared with what OpenMP has now, since the host may set the number for itself.
    if (omp_get_max_threads() != threads) omp_set_num_threads(threads);
}

int team_size()
{
    if (g_forked.load(std::memory_order_relaxed) || omp_in_parallel()) return 1;
    int32_t threads = g_host->num_threads();
    return threads > 1 ? threads : 1;
}

void run_chunks(int64_t count, ChunkFn fn, void *context)
{
    int team = count > 1 ? team_size() : 1;
    if (team == 1) {
        for (int64_t i = 0; i < count; i++) fn(context, i);
        return;
    }
    set_team(team);
    // Always the whole team: libgomp ends the threads that a smaller one leaves over.
#pragma omp parallel for schedule(static) num_threads(team)
    for (int64_t i = 0; i < count; i++) fn(context, i);
}

#else

void set_team(int) {}

int team_size()
{
    return 1;
}

void run_chunks(int64_t count, ChunkFn fn, void *context)
{
    for (int64_t i = 0; i < count; i++) fn(context, i);
}

#endif

}  // namespace yoke::cpu
