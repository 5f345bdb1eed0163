// Products during the end of the process.
//
// oneDNN keeps objects in statics. exit() destroys the statics while other threads go on, so a thread inside oneDNN
// reads freed memory. So each use stands in an Inside. Before the first of these statics is destroyed, a handler
//   refuses every further use: from then on, every product is an error;
//   waits for the threads inside, kInsideTimeout seconds at most.
// exit() calls handlers from the last registered to the first. Destructors of statics are among them, registered when
// a static is made. So the handler is registered again after each step that may have made a static.
//
// Until the first products are done, unfinished objects are not guarded by the handler. exit() first ends the
// thread-local objects of its thread. So a thread-local object of Yoke waits there. First products after this wait to
// see whether only that thread ends. The thread that loaded the library has such an object. exit() in another thread
// is not guarded during the first products.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include "kernels/cpu/onednn_signals.h"

namespace yoke::cpu {

// Status of a refused use of oneDNN. oneDNN itself never returns this status when a product is made or run.
constexpr dnnl_status_t kProcessEnds = dnnl_not_required;

// The calling thread uses oneDNN in its scope, if status() is dnnl_success. Costs no lock.
class Inside {
public:
    Inside();
    ~Inside();
    Inside(const Inside &) = delete;
    Inside &operator=(const Inside &) = delete;
    dnnl_status_t status() const { return status_; }

private:
    const HeldSignals
        signals_;  // until the thread is outside again, so that a handler may call exit()
    dnnl_status_t status_;
};

// The calling thread ends, or has no use for oneDNN any more.
void end_inside();

// Whether the handler could be registered when the library was loaded.
bool watches_exit();

// Call, inside, after what may have made a static: the first run of a primitive.
void stay_before_statics();

// The first products of each kind are done: what oneDNN makes once for all is there.
void end_preparation();

// Calls around a fork. No fork happens during a registration: the C library then holds a lock, which would stay
// locked in the child. The child has none of the other threads.
void exit_before_fork();
void exit_after_fork();
void exit_after_fork_in_child();

}  // namespace yoke::cpu
