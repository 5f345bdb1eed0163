// CUDA graphs: a stream's work between begin and end, launched as a whole.
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

// Prepares cuBLASLt and cuDNN, then begins a capture in relaxed mode. Only this mode allows allocations meanwhile,
// which the capture needs.
yoke_status graph_begin(void *device, void *stream, uint32_t flags)
{
    const Scope scope(device, "graph_begin");
    if (scope.status()) return scope.status();
    if (const yoke_status status = cublaslt_prepare(scope.device())) return status;
    if (const yoke_status status = cudnn_prepare(scope.device(), flags)) return status;
    return scope.check(cudaStreamBeginCapture(native_stream(stream), cudaStreamCaptureModeRelaxed),
                       "cudaStreamBeginCapture");
}

// Destroys the captured graph, which is not needed any more. If CUDA keeps the graph, only memory is lost.
static void drop(const Scope &scope, cudaGraph_t captured)
{
    log_failure(scope.device(), cudaGraphDestroy(captured), "graph_end: cudaGraphDestroy");
}

// Tries once more to end the capture, after graph_end failed to enter the context and reported this. No other code
// can end the capture, and a captured stream cannot be used otherwise.
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
