// CUDA graphs: what a stream is given between begin and end, as one thing to launch.
#include "kernels/cuda/host/cublaslt.h"
#include "kernels/cuda/host/cudnn/cudnn.h"
#include "kernels/cuda/host/entries.h"
#include "kernels/cuda/host/failures.h"
#include "kernels/cuda/host/relaxed.h"

namespace yoke::cuda {

static cudaStream_t native_stream(void *stream)
{
    return static_cast<cudaStream_t>(stream);
}

// Relaxed: memory that the capture needs is allocated meanwhile, which no other mode allows.
yoke_status graph_begin(void *device, void *stream, uint32_t flags)
{
    const Scope scope(device, "graph_begin");
    if (scope.status()) return scope.status();
    if (const yoke_status status = cublaslt_prepare(scope.device())) return status;
    if (const yoke_status status = cudnn_prepare(scope.device(), flags)) return status;
    return scope.check(cudaStreamBeginCapture(native_stream(stream), cudaStreamCaptureModeRelaxed),
                       "cudaStreamBeginCapture");
}

// Of the captured graph nothing is wanted any more: where CUDA keeps it, no more than its memory is lost.
static void drop(const Scope &scope, cudaGraph_t captured)
{
    log_failure(scope.device(), cudaGraphDestroy(captured), "graph_end: cudaGraphDestroy");
}

// graph_end could not get into the context, and has told so. It tries once more to end the capture: nobody else can,
// and a stream that is being captured serves for nothing else.
static void abandon(void *device, void *stream)
{
    const RelaxedScope scope(device, "graph_end");
    if (scope.status()) return;
    cudaGraph_t captured = nullptr;
    const cudaError_t error = cudaStreamEndCapture(native_stream(stream), &captured);
    log_failure(scope.device(), error, "graph_end: cudaStreamEndCapture");
    if (captured) drop(scope, captured);
}

yoke_status graph_end(void *device, void *stream, void **graph)
{
    const RelaxedScope scope(device, "graph_end");
    if (scope.status()) {
        abandon(device, stream);
        return scope.status();
    }
    cudaGraph_t captured = nullptr;
    if (const yoke_status status = scope.check(
            cudaStreamEndCapture(native_stream(stream), &captured), "cudaStreamEndCapture"))
        return status;
    cudaGraphExec_t made = nullptr;
    const yoke_status status =
        scope.check(cudaGraphInstantiate(&made, captured, 0), "cudaGraphInstantiate");
    drop(scope, captured);
    if (status) return status;
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
    const RelaxedScope scope(device, "graph_destroy");
    if (scope.status()) return scope.status();
    return scope.check(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)),
                       "cudaGraphExecDestroy");
}

}  // namespace yoke::cuda
