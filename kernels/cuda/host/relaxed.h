// Calls that another library's capture of a graph in this process must not notice.
//
// In CUDA's default mode, and so in PyTorch's, a capture forbids every thread what may wait or allocate, and is lost
// when any does it: cudaMalloc, cudaFree, pinned memory, asking and awaiting streams and events. What the module does
// of that touches nothing of theirs, so the calling thread is relaxed for as long.
//
// Contract
//  * Every entry whose calls are not ordered on a stream opens a RelaxedScope; launches, copies and fills, a Scope.
//  * A launch is in a Scope although the first of a kernel loads its code. CUDA's reference names no launch among the
//    calls that a capture forbids; the guide says of loading that it may synchronise the context, and not whether that
//    costs another's capture. To relax each launch would cost two calls each. Nothing else on a launch's way is of
//    that kind: grids come from arithmetic, not from cudaFuncGetAttributes or an occupancy query (those that CUB's sort
//    makes excepted, which the reference does not forbid either). No GPU has been asked whether its driver holds to
//    that.
#pragma once

#include "kernels/cuda/host/cuda.h"

namespace yoke::cuda {

// In a context. The thread's mode is its own again when this goes.
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
    // Without it the call is made all the same; what CUDA has to tell, it tells at that.
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
