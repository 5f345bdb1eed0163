// What all uses of oneDNN share: its engine, a stream and caches for each thread, and the lock on what is in the
// making.
//
// Contract
//  * A thread's stream and caches are its own, so there is no lock on them. They are made at its first use of oneDNN
//    and go with the thread. All functions are called inside (onednn_exit.h), where a OneThread lives.
//  * oneDNN keeps what it makes in a cache of its own, under a lock that a fork in the midst would leave to the child
//    locked for ever. So primitives are made where a Making lives, and a fork waits for it.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include "kernels/cpu/onednn.h"

namespace yoke::cpu {

// Something that a thread keeps until it ends; `destroy` is called inside.
struct ThreadKept {
    void (*destroy)(ThreadKept *self);
    ThreadKept *next;
};

// Makes the calling thread's stream, and the engine, if need be.
dnnl_status_t start_onednn_thread();
// Both after start_onednn_thread; the engine is one for the process, kept to its end.
dnnl_stream_t onednn_stream();
dnnl_engine_t onednn_engine();
// Leaves `kept` to the calling thread, which has started.
void keep_for_thread(ThreadKept *kept);

class Making {
public:
    Making();
    ~Making();
    Making(const Making &) = delete;
    Making &operator=(const Making &) = delete;
};

// Keeps oneDNN to the calling thread while it lives, and then gives the program its own number of OpenMP threads back.
class OneThread {
public:
    OneThread();
    ~OneThread();
    OneThread(const OneThread &) = delete;
    OneThread &operator=(const OneThread &) = delete;
    // dnnl_out_of_memory: there was none for that, and oneDNN must not be called.
    dnnl_status_t status() const { return status_; }

private:
    int before_;
    dnnl_status_t status_ = dnnl_success;
};

}  // namespace yoke::cpu
