#include "kernels/cpu/gemm_exit.h"

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <bit>
#include <new>

// Of the C++ ABI, as atexit() for one library; a library is known by any address that is its own. glibc keeps the same list
// for all, and __cxa_finalize calls and takes out the handlers of one.
extern "C" int __cxa_atexit(void (*handler)(void *), void *argument, void *library);
extern "C" void __cxa_finalize(void *library);

namespace yoke::cpu {

constexpr int64_t kPatience = 10;  // seconds: a product of 8192 x 8192 takes one thread no longer

// One for each thread that has used oneDNN. Never freed, since the handler may look at any time; another thread gets it.
struct Record {
    std::atomic<bool> taken{true}, inside{false};
    Record *next = nullptr;
};

static std::atomic<Record *> g_records{nullptr};
static std::atomic<bool> g_ending{false};
static thread_local Record *t_record __attribute__((tls_model("initial-exec")));

static Record *find_record()
{
    for (Record *record = g_records.load(); record; record = record->next) {
        bool free = false;
        if (record->taken.compare_exchange_strong(free, true)) return record;
    }
    Record *made = new (std::nothrow) Record;
    if (!made) return nullptr;
    made->next = g_records.load();
    while (!g_records.compare_exchange_weak(made->next, made)) {
    }
    return made;
}

Inside::Inside() : status_(dnnl_success)
{
    if (!t_record) t_record = find_record();
    if (!t_record) {
        status_ = dnnl_out_of_memory;
        return;
    }
    // Either the handler sees this thread inside, or this thread sees that the process ends.
    t_record->inside.store(true);
    if (!g_ending.load()) return;
    t_record->inside.store(false);
    status_ = kProcessEnds;
}

Inside::~Inside()
{
    if (status_ == dnnl_success) t_record->inside.store(false, std::memory_order_release);
}

void end_inside()
{
    if (Record *record = t_record) {
        t_record = nullptr;
        record->inside.store(false);
        record->taken.store(false);
    }
}

// ---- exit ---------------------------------------------------------------------------------------------------------

// Whether another thread is inside; the one that calls exit() may be, from a signal handler of the host's.
static bool is_used()
{
    for (Record *record = g_records.load(); record; record = record->next)
        if (record != t_record && record->inside.load()) return true;
    return false;
}

static void end_products()
{
    if (g_ending.exchange(true)) return;
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const timespec pause{0, 100'000};
    for (const int64_t last = now.tv_sec + kPatience; is_used() && now.tv_sec <= last;) {
        nanosleep(&pause, nullptr);
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
}

// Two names by turns, so that there is no moment without a handler. What is taken out below others leaves a place of 32
// bytes empty for good; so there is an end to it.
constexpr uint64_t kOften = 1024;
static char g_names[2];
static uint64_t g_registered;  // how often; under the lock
static pthread_mutex_t g_registering = PTHREAD_MUTEX_INITIALIZER;
// This thread takes the old handler out, which calls it.
static thread_local bool t_replaces __attribute__((tls_model("initial-exec")));

static void on_exit_begins(void *)
{
    if (!t_replaces) end_products();
}

// While the library is loaded, after oneDNN was: so a process that ends before its first product is known to end.
static const bool g_watched = __cxa_atexit(on_exit_begins, nullptr, &g_names[0]) == 0;

bool watches_exit()
{
    return g_watched;
}

// oneDNN makes its statics at its first steps of a kind. So after many products a further one is looked for now and then.
void stay_before_statics()
{
    pthread_mutex_lock(&g_registering);
    const uint64_t number = ++g_registered;
    if (number <= kOften || std::has_single_bit(number)) {
        char *fresh = &g_names[number % 2], *old = &g_names[(number + 1) % 2];
        t_replaces = true;
        // Without memory for another handler the old one stays.
        if (__cxa_atexit(on_exit_begins, nullptr, fresh) == 0) __cxa_finalize(old);
        t_replaces = false;
    }
    pthread_mutex_unlock(&g_registering);
}

void exit_after_fork()
{
    g_registering = PTHREAD_MUTEX_INITIALIZER;
    for (Record *record = g_records.load(); record; record = record->next) {
        if (record == t_record) continue;
        record->inside.store(false);
        record->taken.store(false);
    }
}

}  // namespace yoke::cpu
