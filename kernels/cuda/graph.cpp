// CUDA graphs: what a stream is given between begin and end, as one thing to launch.
#include "kernels/cuda/entries.h"

namespace yoke::cuda {

static cudaStream_t native_stream(void *stream)
{
    return static_cast<cudaStream_t>(stream);
}

// Relaxed: memory that the capture needs is allocated meanwhile, which no other mode allows.
yoke_status graph_begin(void *device, void *stream)
{
    const Scope scope(device, "graph_begin");
    if (scope.status()) return scope.status();
    return scope.check(cudaStreamBeginCapture(native_stream(stream), cudaStreamCaptureModeRelaxed),
                       "cudaStreamBeginCapture");
}

yoke_status graph_end(void *device, void *stream, void **graph)
{
    const Scope scope(device, "graph_end");
    if (scope.status()) return scope.status();
    cudaGraph_t captured = nullptr;
    if (const yoke_status status = scope.check(
            cudaStreamEndCapture(native_stream(stream), &captured), "cudaStreamEndCapture"))
        return status;
    cudaGraphExec_t made = nullptr;
    const yoke_status status =
        scope.check(cudaGraphInstantiate(&made, captured, 0), "cudaGraphInstantiate");
    const yoke_status dropped = scope.check(cudaGraphDestroy(captured), "cudaGraphDestroy");
    if (status) return status;
    if (dropped) {
        cudaGraphExecDestroy(made);
        return dropped;
    }
    *graph = made;
    return YOKE_OK;
}

yoke_status graph_launch(void *device, void *graph, void *stream)
{
    const Scope scope(device, "graph_launch");
    if (scope.status()) return scope.status();
    return scope.check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), native_stream(stream)),
                       "cudaGraphLaunch");
}

yoke_status graph_destroy(void *device, void *graph)
{
    const Scope scope(device, "graph_destroy");
    if (scope.status()) return scope.status();
    return scope.check(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)),
                       "cudaGraphExecDestroy");
}

}  // namespace yoke::cuda
