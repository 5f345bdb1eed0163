// Calls forbidden in captures, and streams that join captures. See fake.h.
#include <algorithm>
#include <utility>

#include "tests/fakes/cuda/runtime.h"

// All of this with the mutex held.
namespace yoke::fake {

cudaError_t spoil(const std::shared_ptr<CUgraph_st> &capture, cudaError_t error)
{
    capture->spoiled = true;
    return end(error);
}

void join(CUstream_st &stream, const std::shared_ptr<CUgraph_st> &capture, const Reached &reached)
{
    if (stream.capture != capture) stream.reached.clear();
    stream.capture = capture;
    for (const auto &[other, position] : reached)
        stream.reached[other] = std::max(stream.reached[other], position);
    ++stream.reached[&stream];
}

bool is_joined(const std::shared_ptr<CUgraph_st> &capture)
{
    Reached known = capture->origin->reached;
    return std::all_of(state().streams.begin(), state().streams.end(), [&](cudaStream_t stream) {
        return stream->capture != capture || known[stream] >= stream->reached[stream];
    });
}

static thread_local cudaStreamCaptureMode t_mode = cudaStreamCaptureModeGlobal;

cudaStreamCaptureMode exchange_mode(cudaStreamCaptureMode mode)
{
    return std::exchange(t_mode, mode);
}

cudaError_t break_captures()
{
    bool any = false;
    if (t_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
    for (const cudaStream_t stream : state().streams) {
        CUgraph_st *capture = stream->capture.get();
        if (!capture || capture->mode == cudaStreamCaptureModeRelaxed) continue;
        const bool mine = capture->thread == std::this_thread::get_id(),
                   global = capture->mode == cudaStreamCaptureModeGlobal &&
                            t_mode == cudaStreamCaptureModeGlobal;
        if (mine || global) any = capture->spoiled = true;
    }
    return any ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

bool spoil_captures_of(int device)
{
    bool any = false;
    for (const cudaStream_t stream : state().streams) {
        if (stream->device != device || !stream->capture) continue;
        any = stream->capture->spoiled = true;
    }
    return any;
}

}  // namespace yoke::fake
