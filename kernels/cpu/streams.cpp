// Streams and events of the CPU. Work runs at once in the caller, so every stream is idle and every event reached;
// an event keeps the time at which it was recorded.
#include <time.h>

#include <atomic>
#include <new>

#include "kernels/cpu/device.h"

namespace yoke::cpu {

// First word of a live handle. Another value means a destroyed or foreign handle.
constexpr uint64_t kStreamMark = 0x6d61657274732e79u;
constexpr uint64_t kEventMark = 0x00746e6576652e79u;

struct Stream {
    uint64_t mark = kStreamMark;
};

struct Event {
    uint64_t mark = kEventMark;
    uint32_t flags = 0;
    std::atomic<int64_t> nanoseconds{-1};  // monotonic clock; -1 before the first record
};

static yoke_status check_stream(void *device, const void *stream, const char *call)
{
    if (stream && static_cast<const Stream *>(stream)->mark != kStreamMark)
        return fail(YOKE_E_CLOSED, "cpu: %s was given a stream that is not open", call);
    return check_device(device, call);
}

static yoke_status check_event(void *device, const void *event, const char *call)
{
    if (!event || static_cast<const Event *>(event)->mark != kEventMark)
        return fail(YOKE_E_CLOSED, "cpu: %s was given an event that is not open", call);
    return check_device(device, call);
}

yoke_status stream_create(void *device, int32_t, void **stream)
{
    if (yoke_status status = check_device(device, "stream_create")) return status;
    Stream *made = new (std::nothrow) Stream;
    if (!made) return fail(YOKE_E_OOM, "cpu: no host memory for a stream");
    *stream = made;
    return YOKE_OK;
}

yoke_status stream_destroy(void *device, void *stream)
{
    if (!stream) return fail(YOKE_E_VALUE, "cpu: the default stream cannot be destroyed");
    if (yoke_status status = check_stream(device, stream, "stream_destroy")) return status;
    static_cast<Stream *>(stream)->mark = 0;
    delete static_cast<Stream *>(stream);
    return YOKE_OK;
}

yoke_status stream_synchronize(void *device, void *stream)
{
    return check_stream(device, stream, "stream_synchronize");
}

yoke_status stream_query(void *device, void *stream, int32_t *idle)
{
    if (yoke_status status = check_stream(device, stream, "stream_query")) return status;
    *idle = 1;
    return YOKE_OK;
}

yoke_status event_create(void *device, uint32_t flags, void **event)
{
    if (yoke_status status = check_device(device, "event_create")) return status;
    Event *made = new (std::nothrow) Event;
    if (!made) return fail(YOKE_E_OOM, "cpu: no host memory for an event");
    made->flags = flags;
    *event = made;
    return YOKE_OK;
}

yoke_status event_destroy(void *device, void *event)
{
    if (yoke_status status = check_event(device, event, "event_destroy")) return status;
    static_cast<Event *>(event)->mark = 0;
    delete static_cast<Event *>(event);
    return YOKE_OK;
}

yoke_status event_record(void *device, void *event, void *stream)
{
    if (yoke_status status = check_event(device, event, "event_record")) return status;
    if (yoke_status status = check_stream(device, stream, "event_record")) return status;
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    static_cast<Event *>(event)->nanoseconds.store(now.tv_sec * INT64_C(1000000000) + now.tv_nsec,
                                                   std::memory_order_release);
    return YOKE_OK;
}

yoke_status event_wait(void *device, void *event, void *stream)
{
    if (yoke_status status = check_event(device, event, "event_wait")) return status;
    return check_stream(device, stream, "event_wait");
}

yoke_status event_query(void *device, void *event, int32_t *reached)
{
    if (yoke_status status = check_event(device, event, "event_query")) return status;
    *reached = 1;
    return YOKE_OK;
}

yoke_status event_synchronize(void *device, void *event)
{
    return check_event(device, event, "event_synchronize");
}

yoke_status event_elapsed(void *device, void *start, void *end, double *seconds)
{
    if (yoke_status status = check_event(device, start, "event_elapsed")) return status;
    if (yoke_status status = check_event(device, end, "event_elapsed")) return status;
    const Event *first = static_cast<Event *>(start), *last = static_cast<Event *>(end);
    if (!(first->flags & last->flags & YOKE_EVENT_TIMING))
        return fail(YOKE_E_STATE,
                    "cpu: event_elapsed needs two events that were created with timing");
    int64_t from = first->nanoseconds.load(std::memory_order_acquire);
    int64_t to = last->nanoseconds.load(std::memory_order_acquire);
    if (from < 0 || to < 0)
        return fail(YOKE_E_STATE,
                    "cpu: event_elapsed needs two recorded events; the %s event was not recorded",
                    from < 0 ? "first" : "second");
    *seconds = static_cast<double>(to - from) * 1e-9;
    return YOKE_OK;
}

}  // namespace yoke::cpu
