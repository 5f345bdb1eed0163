#include "kernels/cpu/onednn_exit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <new>

// Functions of the C++ ABI, like atexit() for a single library. Any address in a library identifies the library.
// glibc keeps a common list for all libraries; __cxa_finalize calls and removes a library's handlers.
extern "C" int __cxa_atexit(void (*handler)(void *), void *argument, void *library);
extern "C" void __cxa_finalize(void *library);
extern "C" int __cxa_thread_atexit_impl(void (*handler)(void *), void *argument, void *library);

namespace yoke::cpu {

// Seconds to wait for the threads inside: no product of 8192 x 8192 takes a single thread longer.
constexpr int64_t kInsideTimeout = 10;

// Record of a thread that has used oneDNN. A record is never freed, because the handler may read it at any time.
// After its thread has ended, another thread reuses it.
struct Record {
    std::atomic<bool> taken{true}, inside{false};
    Record *next = nullptr;
};

static std::atomic<Record *> g_records{nullptr};
static std::atomic<bool> g_ending{false};
static thread_local Record *t_record __attribute__((tls_model("initial-exec")));

static std::atomic<bool> g_prepared{false};  // true after the first products
// Last thread that began to end before g_prepared became true, or 0.
static std::atomic<pid_t> g_leaving{0};
static char g_names[2];

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

// Returns whether another thread is inside. The thread that calls exit() may be inside, if a signal handler of the
// host program calls exit().
static bool is_used()
{
    for (Record *record = g_records.load(); record; record = record->next)
        if (record != t_record && record->inside.load()) return true;
    return false;
}

static void wait_for_others()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const timespec pause{0, 100'000};
    for (const int64_t last = now.tv_sec + kInsideTimeout; is_used() && now.tv_sec <= last;) {
        nanosleep(&pause, nullptr);
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
}

// ---- before the first products are done ---------------------------------------------------------------------------

static bool has_ended(pid_t thread)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "re");
    if (!file) return true;
    const bool read = fgets(text, sizeof(text), file) != nullptr;
    fclose(file);
    const char *state = strrchr(text, ')');  // the first thread stays, as a zombie
    return !read || !state || state[1] != ' ' || state[2] == 'Z' || state[2] == 'X';
}

// Returns whether the last thread that began to end may do so because the process ends. Waits up to 0.1 s for the
// thread: a thread that ends alone is gone soon.
static bool may_be_exiting()
{
    const pid_t thread = g_leaving.load();
    if (thread == 0 || thread == gettid()) return false;
    const timespec pause{0, 1'000'000};
    for (int i = 0; i < 100; i++) {
        if (has_ended(thread)) {
            pid_t gone = thread;
            g_leaving.compare_exchange_strong(gone, 0);
            return false;
        }
        nanosleep(&pause, nullptr);
    }
    return true;
}

static void on_thread_leaves(void *)
{
    if (g_prepared.load()) return;
    g_leaving.store(gettid());
    wait_for_others();
}

void end_preparation()
{
    g_prepared.store(true);
}

// ---- uses -----------------------------------------------------------------------------------------------------------

Inside::Inside() : status_(dnnl_success)
{
    if (!t_record) t_record = find_record();
    if (!t_record) {
        status_ = dnnl_out_of_memory;
        return;
    }
    // Either the handler sees this thread inside, or this thread sees that the process ends.
    t_record->inside.store(true);
    if (!g_ending.load() && (g_prepared.load() || !may_be_exiting())) return;
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

static void end_products()
{
    if (!g_ending.exchange(true)) wait_for_others();
}

// Two names in turn, so a handler is registered at any moment. Each handler removed from the middle of the list
// leaves an unused place of 32 bytes. So after kOften handlers, registrations become rare.
constexpr uint64_t kOften = 1024;
static uint64_t g_registered;  // number of registrations; under the lock
static pthread_mutex_t g_registering = PTHREAD_MUTEX_INITIALIZER;
// Set while this thread removes the old handler, because the removal calls the handler.
static thread_local bool t_replaces __attribute__((tls_model("initial-exec")));

static void on_exit_begins(void *)
{
    if (!t_replaces) end_products();
}

// Registers the handlers when the library is loaded, after oneDNN, and returns whether this succeeded. So a process
// that ends before its first product is detected.
static bool watch()
{
    // Not called for every thread: glibc ends the process if it has no memory for this.
    __cxa_thread_atexit_impl(on_thread_leaves, nullptr, &g_names[0]);
    return __cxa_atexit(on_exit_begins, nullptr, &g_names[0]) == 0;
}
static const bool g_watched = watch();

bool watches_exit()
{
    return g_watched;
}

// Registers the exit handler anew. oneDNN makes its statics at the first steps of a kind, so after many products a
// registration is rarely needed.
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

void exit_before_fork()
{
    pthread_mutex_lock(&g_registering);
}

void exit_after_fork()
{
    pthread_mutex_unlock(&g_registering);
}

void exit_after_fork_in_child()
{
    exit_after_fork();
    g_leaving.store(0);
    for (Record *record = g_records.load(); record; record = record->next) {
        if (record == t_record) continue;
        record->inside.store(false);
        record->taken.store(false);
    }
}

}  // namespace yoke::cpu
