// signal_stack.h: a stack of its own for the signal handlers of a thread that runs oneDNN.
//
// A handler's frame on the thread's own stack spoils some of oneDNN's products on AVX2 (libdnnl 2.6 of Debian 12): they
// went on with wrong pointers. Handlers that ask for an alternative stack (SA_ONSTACK), as Yoke's and Python's do, then
// run there.
#pragma once

#include <stddef.h>

namespace yoke::cpu {

class SignalStack {
public:
    // Gives the calling thread an alternative stack, unless it has one. Without memory it goes without.
    SignalStack();
    ~SignalStack();  // in the same thread
    SignalStack(const SignalStack &) = delete;
    SignalStack &operator=(const SignalStack &) = delete;

private:
    void *start_ = nullptr;
    size_t bytes_ = 0;
};

}  // namespace yoke::cpu
