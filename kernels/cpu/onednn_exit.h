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

// Scope in which the calling thread may use oneDNN, if status() is dnnl_success. Takes no lock.
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

// Releases the calling thread's record: the thread ends, or does not use oneDNN any more.
void end_inside();

// Returns whether the handler was registered when the library was loaded.
bool watches_exit();

// Registers the handler again, as the last handler. Called inside, after a step that may have made a static: the
// first run of a primitive.
void stay_before_statics();

// Notes that the first products of each kind are done, so oneDNN's shared objects exist. Threads that end later do
// not wait.
void end_preparation();

// Holds the lock of registrations during a fork, so no fork happens during a registration. Otherwise a lock of the C
// library, held by a registration, would stay locked in the child. In the child, also clears the records of threads
// that the child does not have.
void exit_before_fork();
void exit_after_fork();
void exit_after_fork_in_child();

}  // namespace yoke::cpu
