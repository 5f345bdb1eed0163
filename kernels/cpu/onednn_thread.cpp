#include "kernels/cpu/onednn_thread.h"

#include <pthread.h>

#include <new>

#include "kernels/cpu/onednn_exit.h"
#include "kernels/cpu/onednn_room.h"

// oneDNN's OpenMP, from whichever library of the process. No other code here is built against OpenMP.
extern "C" {
__attribute__((weak)) int omp_get_max_threads(void);
__attribute__((weak)) void omp_set_num_threads(int);
}

namespace yoke::cpu {

struct OnednnThread {
    dnnl_stream_t stream;
    ThreadKept *kept;
};

static pthread_key_t g_key;
static dnnl_engine_t g_engine;
static thread_local OnednnThread *t_thread __attribute__((tls_model("initial-exec")));

// ---- unfinished primitives ----------------------------------------------------------------------------------------

static pthread_mutex_t g_making = PTHREAD_MUTEX_INITIALIZER;

static void lock_making()
{
    pthread_mutex_lock(&g_making);
}

static void unlock_making()
{
    pthread_mutex_unlock(&g_making);
}

Making::Making()
{
    lock_making();
}

Making::~Making()
{
    unlock_making();
}

static void before_fork()
{
    lock_making();
    exit_before_fork();
}

static void after_fork()
{
    exit_after_fork();
    unlock_making();
}

static void after_fork_in_child()
{
    exit_after_fork_in_child();
    unlock_making();
}

// Handlers for forks, registered while the library is loaded. So a fork during the very first product finds the
// handlers.
static const bool g_has_handlers =
    pthread_atfork(before_fork, after_fork, after_fork_in_child) == 0;

// ---- threads --------------------------------------------------------------------------------------------------------

// Ends a thread's use of oneDNN. If the process ends too, the thread's objects stay, because oneDNN may be destroyed.
static void destroy_thread(void *pointer)
{
    OnednnThread *thread = static_cast<OnednnThread *>(pointer);
    if (const Inside inside; inside.status() == dnnl_success) {
        while (ThreadKept *kept = thread->kept) {
            thread->kept = kept->next;
            kept->destroy(kept);
        }
        dnnl_stream_destroy(thread->stream);
        delete thread;
    }
    t_thread = nullptr;
    end_inside();
}

// Makes the thread key and the engine of the process, if they are missing. Called under the lock, at each thread's
// first use. Returns dnnl_out_of_memory if a step or a handler fails.
static dnnl_status_t start_process()
{
    // Finished steps stay, so a start that failed for missing memory can be tried again.
    static bool has_key;
    if (!has_key) has_key = pthread_key_create(&g_key, destroy_thread) == 0;
    if (!has_key || !g_has_handlers || !watches_exit()) return dnnl_out_of_memory;
    return g_engine ? dnnl_success : dnnl_engine_create(&g_engine, dnnl_cpu, 0);
}

dnnl_status_t start_onednn_thread()
{
    if (t_thread) return dnnl_success;
    {
        const Making making;
        if (!has_room_for_onednn(0)) return dnnl_out_of_memory;
        if (dnnl_status_t status = start_process()) return status;
    }
    OnednnThread *thread = new (std::nothrow) OnednnThread();
    if (!thread || !has_room_for_onednn(0)) {
        delete thread;
        return dnnl_out_of_memory;
    }
    dnnl_status_t status = dnnl_stream_create(&thread->stream, g_engine, dnnl_stream_default_flags);
    if (status == dnnl_success && pthread_setspecific(g_key, thread)) {
        dnnl_stream_destroy(thread->stream);
        status = dnnl_out_of_memory;
    }
    if (status != dnnl_success) {
        delete thread;
        return status;
    }
    t_thread = thread;
    return dnnl_success;
}

dnnl_stream_t onednn_stream()
{
    return t_thread->stream;
}

dnnl_engine_t onednn_engine()
{
    return g_engine;
}

void keep_for_thread(ThreadKept *kept)
{
    kept->next = t_thread->kept;
    t_thread->kept = kept;
}

OneThread::OneThread() : before_(omp_get_max_threads ? omp_get_max_threads() : 1)
{
    if (before_ == 1) return;
    if (has_room_for_openmp()) {
        omp_set_num_threads(1);
    } else {
        before_ = 1;
        status_ = dnnl_out_of_memory;
    }
}

OneThread::~OneThread()
{
    if (before_ != 1) omp_set_num_threads(before_);
}

}  // namespace yoke::cpu
