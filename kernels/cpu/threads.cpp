// Access to the team: a single thread of the host program at a time, and no thread waits for it.
#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstring>

#include "kernels/cpu/team.h"

namespace yoke::cpu {

// Chunks for each thread. Work that costs no time to cut has 8, because a chunk with operands in another thread's
// cache is slower by a third. Other work on a busy machine has 2, because a thread preempted for some milliseconds
// keeps its parts. For products, whose parts pack operands anew, 2 were faster there than 1, 3, 4 and 8.
constexpr int kFineChunks = 8, kBusyChunks = 2;

// Never destroyed: at the end of the process, workers wait in this object.
static constinit Team g_team;
static std::atomic<bool> g_taken{false};
static std::atomic<bool> g_said{false};
// Number of threads wanted when the system gave fewer threads, and the number given. If another number is wanted, the
// team tries again.
static std::atomic<int> g_refused{0}, g_given{0};

// True if this thread's calls use no other thread, because this thread is a worker or runs a job.
static thread_local bool t_alone __attribute__((tls_model("initial-exec")));

void enter_team()
{
    t_alone = true;
}

int team_size()
{
    if (t_alone) return 1;
    int threads = std::min(g_host->num_threads(), kMostThreads);
    if (threads == g_refused.load(std::memory_order_relaxed))
        threads = g_given.load(std::memory_order_relaxed);
    return threads > 1 ? threads : 1;
}

int team_chunks()
{
    int size = team_size();
    return size > 1 && g_team.is_machine_busy() ? size * kBusyChunks : size;
}

int64_t fine_chunks(int64_t most)
{
    int64_t size = team_size();
    if (size == 1 || most < size) return size == 1 ? 1 : most;
    return std::min(most / size, int64_t{kFineChunks}) * size;
}

static void run_alone(int64_t count, ChunkFn fn, void *context)
{
    for (int64_t i = 0; i < count; i++) fn(context, i, 0);
}

static void say_refused(int wanted, int given, int error)
{
    g_given.store(given);
    g_refused.store(wanted);
    if (g_said.exchange(true)) return;
    char text[256];
    snprintf(
        text, sizeof(text),
        "cpu: the system cannot create more threads (%s): %d threads work instead of %d; raise the limit on processes, or set YOKE_NUM_THREADS to a smaller number",
        strerror(error), given, wanted);
    g_host->log(YOKE_LOG_WARN, text);
}

void run_chunks(int64_t count, ChunkFn fn, void *context, int slots)
{
    int size = count > 1 ? std::min(team_size(), slots) : 1;
    if (size == 1 || g_taken.exchange(true, std::memory_order_acquire))
        return run_alone(count, fn, context);
    t_alone = true;
    int error = 0;
    if (g_team.size() != size) {
        g_refused.store(0);  // another number is asked for: what was refused may be had by now
        if (g_team.resize(size, &error) < size) say_refused(size, g_team.size(), error);
    }
    g_team.run(count, fn, context);
    t_alone = false;
    g_taken.store(false, std::memory_order_release);
}

void rest_threads()
{
    if (t_alone || g_taken.exchange(true, std::memory_order_acquire)) return;
    int error;
    g_team.resize(1, &error);
    g_refused.store(0);
    g_taken.store(false, std::memory_order_release);
}

// Resets the team in a forked child, where only the forking thread exists. This thread was in no job, because a job
// runs no code of the host program.
void threads_after_fork()
{
    g_team.forget();
    g_refused.store(0);
    g_taken.store(false);
}

}  // namespace yoke::cpu
