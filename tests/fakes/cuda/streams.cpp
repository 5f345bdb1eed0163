// The fake runtime's streams, events and graphs. See fake.h.
#include <cstdlib>
#include <cstring>

#include "tests/fakes/cuda/runtime.h"

using namespace yoke::fake;

extern "C" {

// ---- streams --------------------------------------------------------------------------------------------------------

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    ENTER();
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    ENTER();
    if (flags > cudaStreamNonBlocking || priority > 0 || priority < -5)
        return end(cudaErrorInvalidValue);
    *stream = new CUstream_st{current_device(), flags != cudaStreamNonBlocking, {}, {}, {}};
    state().streams.insert(*stream);
    hold(FAKE_STREAMS, 1);
    return cudaSuccess;
}

// Work given to the stream before is still done.
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    ENTER();
    if (!find_stream(stream) || !state().streams.erase(stream))
        return end(cudaErrorInvalidResourceHandle);
    delete stream;
    hold(FAKE_STREAMS, -1);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    ENTER_UNSAFE();
    CUstream_st *const on = find_stream(stream);
    if (!on) return end(cudaErrorInvalidResourceHandle);
    if (on->capture) return spoil(on->capture, cudaErrorStreamCaptureUnsupported);
    const int device = on->device;
    wait_for(on->last);
    return take_error(device);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    ENTER_UNSAFE();
    CUstream_st *const on = find_stream(stream);
    if (!on) return end(cudaErrorInvalidResourceHandle);
    if (on->capture) return spoil(on->capture, cudaErrorStreamCaptureUnsupported);
    const bool done = look_at(on->last);
    if (const cudaError_t error = take_error(on->device)) return error;
    return done ? cudaSuccess : end(cudaErrorNotReady);
}

// ---- events ---------------------------------------------------------------------------------------------------------

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    ENTER();
    *event = new CUevent_st{current_device(), !(flags & cudaEventDisableTiming), {}, {}, {}};
    state().events.insert(*event);
    hold(FAKE_EVENTS, 1);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    ENTER();
    if (!state().events.erase(event)) return end(cudaErrorInvalidResourceHandle);
    delete event;
    hold(FAKE_EVENTS, -1);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    ENTER();
    CUstream_st *const on = find_stream(stream);
    if (const cudaError_t problem = problem_of(on)) return end(problem);
    if (!state().events.count(event) || event->device != on->device)
        return end(cudaErrorInvalidResourceHandle);
    event->capture = on->capture;
    event->reached = on->reached;
    event->recorded = on->capture ? nullptr : enqueue(*on, nullptr);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    ENTER();
    if (flags) return end(cudaErrorInvalidValue);
    CUstream_st *const on = find_stream(stream);
    if (const cudaError_t problem = problem_of(on)) return end(problem);
    if (!state().events.count(event)) return end(cudaErrorInvalidResourceHandle);
    if (event->capture) {
        if (on->capture && on->capture != event->capture)
            return spoil(on->capture, cudaErrorStreamCaptureMerge);
        join(*on, event->capture, event->reached);
        return cudaSuccess;
    }
    if (!event->recorded) return cudaSuccess;
    // Work in a graph may wait only for work of the same graph, so the call fails even after the event is reached.
    if (on->capture) return spoil(on->capture, cudaErrorStreamCaptureIsolation);
    if (event->recorded->done) return cudaSuccess;
    enqueue(*on, nullptr, {}, event->recorded);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    ENTER_UNSAFE();
    if (!state().events.count(event)) return end(cudaErrorInvalidResourceHandle);
    if (event->capture) return spoil(event->capture, cudaErrorCapturedEvent);
    return look_at(event->recorded) ? take_error(event->device) : end(cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    ENTER_UNSAFE();
    if (!state().events.count(event)) return end(cudaErrorInvalidResourceHandle);
    if (event->capture) return spoil(event->capture, cudaErrorCapturedEvent);
    const int device = event->device;
    wait_for(event->recorded);
    return take_error(device);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t first, cudaEvent_t last)
{
    ENTER();
    for (const cudaEvent_t event : {first, last})
        if (!state().events.count(event) || !event->timed || !event->recorded)
            return end(cudaErrorInvalidResourceHandle);
    if (!first->recorded->done || !last->recorded->done) return end(cudaErrorNotReady);
    const timespec &from = first->recorded->time, &to = last->recorded->time;
    *milliseconds = static_cast<float>(to.tv_sec - from.tv_sec) * 1e3f +
                    static_cast<float>(to.tv_nsec - from.tv_nsec) * 1e-6f;
    return cudaSuccess;
}

// ---- graphs ---------------------------------------------------------------------------------------------------------

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status)
{
    ENTER();
    const CUstream_st *const on = find_stream(stream);
    if (!on) return end(cudaErrorInvalidResourceHandle);
    if (const cudaError_t error = take_error(on->device)) return error;
    *status = !on->capture           ? cudaStreamCaptureStatusNone
              : on->capture->spoiled ? cudaStreamCaptureStatusInvalidated
                                     : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

// Exchanges the mode of the thread alone: the call needs no context, and cannot fail.
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode)
{
    *mode = exchange_mode(*mode);
    return cudaSuccess;
}

// As asked, or as another library in the process would.
static cudaStreamCaptureMode mode_of(cudaStreamCaptureMode asked)
{
    const char *setting = getenv("FAKE_CUDA_CAPTURE_MODE");
    return !setting                     ? asked
           : !strcmp(setting, "global") ? cudaStreamCaptureModeGlobal
           : !strcmp(setting, "thread") ? cudaStreamCaptureModeThreadLocal
                                        : cudaStreamCaptureModeRelaxed;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    ENTER();
    CUstream_st *const on = find_stream(stream);
    if (!on) return end(cudaErrorInvalidResourceHandle);
    if (on == &default_stream(on->device)) return end(cudaErrorStreamCaptureUnsupported);
    if (on->capture) return end(cudaErrorIllegalState);
    on->capture = std::make_shared<CUgraph_st>();
    on->capture->mode = mode_of(mode);
    on->capture->thread = std::this_thread::get_id();
    on->capture->origin = on;
    on->reached.clear();
    return cudaSuccess;
}

// A capture has ended even if the call fails.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    const int fault = refuse(__func__);
    const std::lock_guard lock(state().mutex);
    const CUstream_st *const on = find_stream(stream);
    if (!on || !on->capture) return end(cudaErrorIllegalState);
    const auto captured = on->capture;
    if (captured->mode != cudaStreamCaptureModeRelaxed &&
        captured->thread != std::this_thread::get_id())
        return end(cudaErrorStreamCaptureWrongThread);
    if (captured->origin != on) return end(cudaErrorStreamCaptureUnmatched);
    const bool joined = is_joined(captured);
    for (const cudaStream_t other : state().streams)
        if (other->capture == captured) other->capture = nullptr;
    for (const cudaEvent_t event : state().events)
        if (event->capture == captured) event->capture = nullptr;
    *graph = nullptr;
    if (fault) return end(fault);
    if (captured->spoiled) return end(cudaErrorStreamCaptureInvalidated);
    if (!joined) return end(cudaErrorStreamCaptureUnjoined);
    *graph = new CUgraph_st(*captured);
    hold(FAKE_GRAPHS, 1);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long flags)
{
    ENTER();
    if (flags || !graph) return end(cudaErrorInvalidValue);
    *made = new CUgraphExec_st{std::make_shared<const CUgraph_st>(*graph)};
    hold(FAKE_GRAPHS, 1);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    ENTER();
    delete graph;
    hold(FAKE_GRAPHS, -1);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    ENTER();
    delete graph;
    hold(FAKE_GRAPHS, -1);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
    ENTER();
    CUstream_st *const on = find_stream(stream);
    if (const cudaError_t problem = problem_of(on)) return end(problem);
    for (const void *block : graph->graph->uses)
        if (find_block(block) == state().blocks.end()) {
            complain("cudaGraphLaunch", "memory that the graph uses was freed");
            return end(cudaErrorInvalidValue);
        }
    const auto run_all = [all = graph->graph] {
        for (const auto &work : all->work)
            if (const int error = work()) return error;
        return 0;
    };
    enqueue(*on, run_all, graph->graph->uses);
    return cudaSuccess;
}

}  // extern "C"
