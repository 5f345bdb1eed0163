// Calls that must not disturb another library's capture of a graph in this process.
//
// In CUDA's default mode, also used by PyTorch, a capture forbids waits and allocations in every thread: cudaMalloc,
// cudaFree, pinned memory, queries and waits of streams and events. If a thread makes such a call, the capture is
// lost. The module's own calls do not touch the captured work, so the calling thread is relaxed during the calls.
//
// Contract
//  * Every entry whose calls are not ordered on a stream opens a RelaxedScope; launches, copies and fills open a
//    Scope.
//  * A launch is in a Scope although a kernel's first launch loads code. CUDA's reference does not list launches
//    among the calls forbidden by a capture. The guide says that loading code may synchronise the context, but not
//    whether this invalidates another capture. A relaxed launch would cost two extra calls. A launch makes no other
//    such calls: grids come from arithmetic, not from cudaFuncGetAttributes or an occupancy query. Only CUB's sort
//    makes such queries, which the reference does not forbid either. This was not tested on a GPU.
#pragma once

#include "kernels/cuda/host/cuda.h"

namespace yoke::cuda {

// Scope in which the thread, within a context, may make calls forbidden by another library's capture. Then the
// thread's mode is restored.
class Relaxed {
public:
    explicit Relaxed(bool wanted = true) : changed_(wanted && exchange()) {}
    ~Relaxed()
    {
        if (changed_) exchange();
    }
    Relaxed(const Relaxed &) = delete;
    Relaxed &operator=(const Relaxed &) = delete;

private:
    // Exchanges the thread's capture mode and `mode_`. Returns false on failure: the call is made anyway, and CUDA
    // reports problems there.
    bool exchange()
    {
        if (cudaThreadExchangeStreamCaptureMode(&mode_) == cudaSuccess) [[likely]]
            return true;
        cudaGetLastError();
        return false;
    }
    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
    bool changed_;
};

class RelaxedScope : public Scope {
public:
    RelaxedScope(void *device, const char *call) : Scope(device, call), relaxed_(!status()) {}
    RelaxedScope(Device &device, CUcontext context, const char *call)
        : Scope(device, context, call), relaxed_(!status())
    {
    }

private:
    Relaxed relaxed_;
};

}  // namespace yoke::cuda
