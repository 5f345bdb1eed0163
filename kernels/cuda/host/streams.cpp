// Streams and events: CUDA's own, behind the contract's opaque pointers.
#include <algorithm>

#include "kernels/cuda/host/entries.h"
#include "kernels/cuda/host/fault.h"
#include "kernels/cuda/host/relaxed.h"

namespace yoke::cuda {

static cudaStream_t native_stream(void *stream)
{
    return static_cast<cudaStream_t>(stream);
}

static cudaEvent_t native_event(void *event)
{
    return static_cast<cudaEvent_t>(event);
}

yoke_status stream_create(void *device, int32_t priority, void **stream)
{
    const RelaxedScope scope(device, "stream_create");
    if (scope.status()) return scope.status();
    int least = 0, greatest = 0;  // CUDA's greatest priority has the lowest number
    if (const yoke_status status = scope.check(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                                               "cudaDeviceGetStreamPriorityRange"))
        return status;
    const int wanted = static_cast<int>(std::clamp<int64_t>(-int64_t{priority}, greatest, least));
    cudaStream_t made = nullptr;
    if (const yoke_status status =
            scope.check(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, wanted),
                        "cudaStreamCreateWithPriority"))
        return status;
    *stream = made;
    return YOKE_OK;
}

yoke_status stream_destroy(void *device, void *stream)
{
    const RelaxedScope scope(device, "stream_destroy");
    if (scope.status()) return scope.status();
    if (!stream) return scope.refuse(YOKE_E_VALUE, "the default stream cannot be destroyed");
    return scope.check(cudaStreamDestroy(native_stream(stream)), "cudaStreamDestroy");
}

yoke_status stream_synchronize(void *device, void *stream)
{
    const RelaxedScope scope(device, "stream_synchronize");
    if (scope.status()) return scope.status();
    const yoke_status status =
        scope.check(cudaStreamSynchronize(native_stream(stream)), "cudaStreamSynchronize");
    return status ? status : take_fault(scope);
}

// Turns the result of a query into *yes. "Not ready" is an answer, not a failure, and is cleared in CUDA, so no later
// launch reports it.
static yoke_status answer(const Scope &scope, cudaError_t said, const char *call, int32_t *yes)
{
    if (said == cudaErrorNotReady) {
        cudaGetLastError();
        *yes = 0;
        return YOKE_OK;
    }
    if (const yoke_status status = scope.check(said, "%s", call)) return status;
    *yes = 1;
    return YOKE_OK;
}

yoke_status stream_query(void *device, void *stream, int32_t *idle)
{
    const RelaxedScope scope(device, "stream_query");
    if (scope.status()) return scope.status();
    return answer(scope, cudaStreamQuery(native_stream(stream)), "cudaStreamQuery", idle);
}

yoke_status event_create(void *device, uint32_t flags, void **event)
{
    const RelaxedScope scope(device, "event_create");
    if (scope.status()) return scope.status();
    const unsigned timing = flags & YOKE_EVENT_TIMING ? cudaEventDefault : cudaEventDisableTiming;
    cudaEvent_t made = nullptr;
    if (const yoke_status status =
            scope.check(cudaEventCreateWithFlags(&made, timing), "cudaEventCreateWithFlags"))
        return status;
    *event = made;
    return YOKE_OK;
}

yoke_status event_destroy(void *device, void *event)
{
    const RelaxedScope scope(device, "event_destroy");
    if (scope.status()) return scope.status();
    return scope.check(cudaEventDestroy(native_event(event)), "cudaEventDestroy");
}

yoke_status event_record(void *device, void *event, void *stream)
{
    const Scope scope(device, "event_record");
    if (scope.status()) return scope.status();
    return scope.check(cudaEventRecord(native_event(event), native_stream(stream)),
                       "cudaEventRecord");
}

yoke_status event_wait(void *device, void *event, void *stream)
{
    const Scope scope(device, "event_wait");
    if (scope.status()) return scope.status();
    return scope.check(
        cudaStreamWaitEvent(native_stream(stream), native_event(event), cudaEventWaitDefault),
        "cudaStreamWaitEvent");
}

yoke_status event_query(void *device, void *event, int32_t *reached)
{
    const RelaxedScope scope(device, "event_query");
    if (scope.status()) return scope.status();
    return answer(scope, cudaEventQuery(native_event(event)), "cudaEventQuery", reached);
}

yoke_status event_synchronize(void *device, void *event)
{
    const RelaxedScope scope(device, "event_synchronize");
    if (scope.status()) return scope.status();
    const yoke_status status =
        scope.check(cudaEventSynchronize(native_event(event)), "cudaEventSynchronize");
    return status ? status : take_fault(scope);
}

yoke_status event_elapsed(void *device, void *start, void *end, double *seconds)
{
    const RelaxedScope scope(device, "event_elapsed");
    if (scope.status()) return scope.status();
    float milliseconds = 0;
    const cudaError_t said =
        cudaEventElapsedTime(&milliseconds, native_event(start), native_event(end));
    if (const yoke_status status = scope.check(
            said,
            "cudaEventElapsedTime (both events need timing, and must be recorded and reached)"))
        return status;
    *seconds = static_cast<double>(milliseconds) * 1e-3;
    return YOKE_OK;
}

}  // namespace yoke::cuda
