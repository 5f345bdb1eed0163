// State common to all uses of oneDNN: the engine, a stream and caches for each thread, and the lock on unfinished
// primitives.
//
// Contract
//  * A thread's stream and caches belong to this thread, so they need no lock. They are made at the thread's first
//    use of oneDNN and end with the thread. All functions are called inside (onednn_exit.h), where a OneThread lives.
//  * oneDNN has its own cache of primitives, under a lock. A fork during a creation would leave the lock locked in
//    the child. So primitives are made where a Making lives, and a fork waits for its end.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include "kernels/cpu/onednn.h"

namespace yoke::cpu {

// Object kept by a thread until the thread ends; `destroy` is called inside.
struct ThreadKept {
    void (*destroy)(ThreadKept *self);
    ThreadKept *next;
};

// Makes the calling thread's stream, and the engine, if they are missing. Returns dnnl_out_of_memory if memory is
// missing.
dnnl_status_t start_onednn_thread();
// Returns the calling thread's stream, and the process's only engine. Both are valid after start_onednn_thread.
dnnl_stream_t onednn_stream();
dnnl_engine_t onednn_engine();
// Hands `kept` to the calling thread, which destroys it at its end. The thread has called start_onednn_thread.
void keep_for_thread(ThreadKept *kept);

class Making {
public:
    Making();
    ~Making();
    Making(const Making &) = delete;
    Making &operator=(const Making &) = delete;
};

// Scope in which oneDNN uses the calling thread only. At its end, the program gets its own number of OpenMP threads
// back.
class OneThread {
public:
    OneThread();
    ~OneThread();
    OneThread(const OneThread &) = delete;
    OneThread &operator=(const OneThread &) = delete;
    // Returns dnnl_success, or dnnl_out_of_memory if memory is missing. In the second case the caller must not call
    // oneDNN.
    dnnl_status_t status() const { return status_; }

private:
    int before_;
    dnnl_status_t status_ = dnnl_success;
};

}  // namespace yoke::cpu
