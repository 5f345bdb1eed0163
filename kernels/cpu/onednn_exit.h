// What becomes of products while the process ends.
//
// oneDNN keeps what it has made in statics, and exit() destroys those while other threads go on: a thread inside oneDNN
// then reads memory that is gone. So each use stands in an Inside. Before the first of these statics is destroyed, a
// handler
//   refuses every further use: a product is an error from then on, whoever asks for it;
//   waits for the threads that are inside, kInsideTimeout seconds at most.
// Handlers of exit() run from the last that was registered to the first, and statics are among them: each is registered
// when it is made. So the handler is registered anew behind whatever may have made one.
//
// Until the first products are done, what is in the making stands before the handler. exit() ends the thread-local
// objects of its thread before anything else, so one of ours waits there, and first products after it wait to see
// whether that thread is at its end alone. The thread that loaded the library has one; exit() in another is not guarded
// then.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include "kernels/cpu/onednn_signals.h"

namespace yoke::cpu {

// What a use of oneDNN comes to that is refused. oneDNN itself gives this to nobody who makes or runs a product.
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

// Around a fork: none falls into a registration, in which the C library holds a lock that it gives no child anew. The
// child has none of the other threads.
void exit_before_fork();
void exit_after_fork();
void exit_after_fork_in_child();

}  // namespace yoke::cpu
