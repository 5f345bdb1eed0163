#include "yoke/stream.h"

#include "capi/src/guard.h"
#include "core/device/stream.h"
#include "core/select/select.h"
#include "core/tensor/tensor.h"

using namespace yoke;
using namespace yoke::capi;

yoke_status yoke_stream_create(yoke_device *device, int32_t priority, yoke_stream **out)
{
    constexpr const char *call = "yoke_stream_create";
    return guard(call, [&] {
        yoke_stream *&place = need_out(out, call);
        place = hand_out<yoke_stream>(make_stream(device_or_current(device), priority));
    });
}

yoke_status yoke_stream_wrap(void *native, yoke_device *device, yoke_stream **out)
{
    constexpr const char *call = "yoke_stream_wrap";
    return guard(call, [&] {
        yoke_stream *&place = need_out(out, call);
        place = hand_out<yoke_stream>(wrap_stream(device_or_current(device), native));
    });
}

yoke_stream *yoke_stream_retain(yoke_stream *stream)
{
    return retain_handle(stream, "yoke_stream_retain");
}

void yoke_stream_release(yoke_stream *stream)
{
    release_handle(stream, "yoke_stream_release");
}

yoke_device *yoke_stream_device(yoke_stream *stream)
{
    constexpr const char *call = "yoke_stream_device";
    return guard_value(call, static_cast<yoke_device *>(nullptr),
                       [&] { return need(stream, call, "stream").lane.device; });
}

void *yoke_stream_handle(yoke_stream *stream)
{
    constexpr const char *call = "yoke_stream_handle";
    return guard_value(call, static_cast<void *>(nullptr),
                       [&] { return need(stream, call, "stream").lane.native; });
}

int32_t yoke_stream_equal(yoke_stream *a, yoke_stream *b)
{
    constexpr const char *call = "yoke_stream_equal";
    return guard_value(
        call, -1, [&] { return &need(a, call, "a").lane == &need(b, call, "b").lane ? 1 : 0; });
}

yoke_status yoke_stream_synchronize(yoke_stream *stream)
{
    constexpr const char *call = "yoke_stream_synchronize";
    return guard(call, [&] { synchronize(need(stream, call, "stream")); });
}

yoke_status yoke_stream_query(yoke_stream *stream, int32_t *idle)
{
    constexpr const char *call = "yoke_stream_query";
    return guard(call, [&] {
        int32_t &place = need(idle, call, "idle");
        place = is_idle(need(stream, call, "stream")) ? 1 : 0;
    });
}

yoke_status yoke_stream_wait_event(yoke_stream *stream, yoke_event *event)
{
    constexpr const char *call = "yoke_stream_wait_event";
    return guard(call,
                 [&] { wait_event(need(stream, call, "stream"), need(event, call, "event")); });
}

yoke_status yoke_set_stream(yoke_stream *stream)
{
    constexpr const char *call = "yoke_set_stream";
    return guard(call, [&] { set_current_stream(need(stream, call, "stream")); });
}

yoke_status yoke_current_stream(yoke_device *device, yoke_stream **out)
{
    constexpr const char *call = "yoke_current_stream";
    return guard(call, [&] {
        yoke_stream *&place = need_out(out, call);
        place = hand_out<yoke_stream>(current_stream(device_or_current(device)));
    });
}

yoke_status yoke_tensor_record_stream(yoke_tensor *tensor, yoke_stream *stream)
{
    constexpr const char *call = "yoke_tensor_record_stream";
    return guard(call, [&] {
        const yoke_tensor &x = need(tensor, call, "tensor");
        const Lane &lane = need(stream, call, "stream").lane;
        if (lane.device != x.device)
            fail(
                YOKE_E_VALUE,
                "%s: the stream is on %s, but the tensor is %s; use a stream of the tensor's device",
                short_name(call), lane.device->name.c_str(), describe(x).c_str());
        if (!lane.device->host) x.storage->note_use(lane.id);
    });
}

yoke_status yoke_tensor_record_use(yoke_tensor *tensor, yoke_event *event)
{
    constexpr const char *call = "yoke_tensor_record_use";
    return guard(call, [&] {
        const yoke_tensor &x = need(tensor, call, "tensor");
        Fence *fence = need(event, call, "event").fence.load(std::memory_order_acquire);
        if (fence) x.storage->note_use(Ref<Fence>::share(fence));
    });
}

yoke_status yoke_event_create(int32_t timing, yoke_event **out)
{
    constexpr const char *call = "yoke_event_create";
    return guard(call, [&] {
        yoke_event *&place = need_out(out, call);
        place = hand_out<yoke_event>(make_event(timing != 0));
    });
}

yoke_event *yoke_event_retain(yoke_event *event)
{
    return retain_handle(event, "yoke_event_retain");
}

void yoke_event_release(yoke_event *event)
{
    release_handle(event, "yoke_event_release");
}

yoke_status yoke_event_record(yoke_event *event, yoke_stream *stream)
{
    constexpr const char *call = "yoke_event_record";
    return guard(call, [&] {
        yoke_event &recorded = need(event, call, "event");
        if (stream) return record_event(recorded, need(stream, call, "stream"));
        const Fence *fence = recorded.fence.load(std::memory_order_acquire);
        record_event(recorded, current_stream(fence ? fence->device : current_device()));
    });
}

yoke_status yoke_event_query(yoke_event *event, int32_t *reached)
{
    constexpr const char *call = "yoke_event_query";
    return guard(call, [&] {
        int32_t &place = need(reached, call, "reached");
        place = is_reached(need(event, call, "event")) ? 1 : 0;
    });
}

yoke_status yoke_event_synchronize(yoke_event *event)
{
    constexpr const char *call = "yoke_event_synchronize";
    return guard(call, [&] { synchronize(need(event, call, "event")); });
}

yoke_status yoke_event_elapsed(yoke_event *start, yoke_event *end, double *seconds)
{
    constexpr const char *call = "yoke_event_elapsed";
    return guard(call, [&] {
        double &place = need(seconds, call, "seconds");
        place = elapsed_seconds(need(start, call, "start"), need(end, call, "end"));
    });
}
