// Fences and events: points in the work of streams.
#include "core/device/deferred_error.h"
#include "core/device/stream.h"
#include "core/device/stream_table.h"

#include <algorithm>

namespace yoke {

namespace {

void *make_native(Device &device, int32_t flags)
{
    void *event = nullptr;
    check_backend(device.backend->event_create(device.handle, flags, &event), "event_create",
                  device.name.c_str());
    return event;
}

// Returns a fence that owns the native event. Without memory for the fence, destroys the event and raises
// std::bad_alloc.
Fence *fence_with(Device &device, void *event, const Lane *lane)
{
    try {
        return new Fence(device, event, lane);
    } catch (...) {
        static_cast<void>(device.backend->event_destroy(device.handle, event));
        throw;
    }
}

void *spare_event(Device &device)
{
    StreamTable &table = table_of(device);
    {
        const std::lock_guard lock(table.spare_mutex);
        if (!table.spare_events.empty()) {
            void *event = table.spare_events.back();
            table.spare_events.pop_back();
            return event;
        }
    }
    return make_native(device, 0);
}

// Returns the fence of an event, made at its first record. Two threads may both make a fence: the first fence is
// kept.
Fence &fence_of(Event &event, Device &device)
{
    if (Fence *known = event.fence.load(std::memory_order_acquire)) return *known;
    void *native = make_native(device, event.timing ? YOKE_EVENT_TIMING : 0);
    Fence *made = fence_with(device, native, nullptr);
    Fence *first = nullptr;
    if (event.fence.compare_exchange_strong(first, made)) return *made;
    made->release();
    return *first;
}

// Returns the fence of the event, or nullptr if the event was never recorded. Raises if the device cannot be used.
const Fence *usable_fence(const Event &event)
{
    const Fence *fence = event.fence.load(std::memory_order_acquire);
    if (fence) check_usable(fence->device);
    return fence;
}

void wait_here(const Fence &fence)
{
    check_backend(fence.device.backend->event_synchronize(fence.device.handle, fence.event),
                  "event_synchronize", fence.device.name.c_str());
}

const Fence &recorded_fence(const Event &event, const char *which)
{
    if (!event.timing)
        fail(YOKE_E_VALUE,
             "elapsed_time: the %s event has no time; create the event with Event(timing=true)",
             which);
    const Fence *fence = usable_fence(event);
    if (!fence)
        fail(YOKE_E_STATE,
             "elapsed_time: the %s event was never recorded; record the event on a stream", which);
    if (!is_reached(*fence))
        fail(YOKE_E_STATE,
             "elapsed_time: the %s event is not reached yet; call its synchronize() first", which);
    return *fence;
}

}  // namespace

void Fence::destroy() noexcept
{
    if (device.host || !is_forked_child()) {
        StreamTable &table = table_of(device);
        bool kept = false;
        if (lane) {
            const std::lock_guard lock(table.spare_mutex);
            kept = table.spare_events.size() < kMostSpareEvents;
            if (kept) table.spare_events.push_back(event);
        }
        if (!kept) static_cast<void>(device.backend->event_destroy(device.handle, event));
    }
    delete this;
}

Ref<Fence> make_fence(const Lane &lane)
{
    Device &device = *lane.device;
    Ref<Fence> fence = Ref<Fence>::adopt(fence_with(device, spare_event(device), &lane));
    check_backend(device.backend->event_record(device.handle, fence->event, lane.native),
                  "event_record", device.name.c_str());
    return fence;
}

Ref<Fence> fence_behind(Device &device, uint8_t id)
{
    if (device.host) return nullptr;
    check_usable(device);
    if (!device.backend->event_create) {
        synchronize(device);
        return nullptr;
    }
    StreamTable &table = table_of(device);
    if (id == 0) return make_fence(table.lanes[0]);
    const std::lock_guard lock(table.mutex);
    const Lane &lane = table.lanes[id];
    return lane.open ? make_fence(lane) : lane.behind;
}

bool is_left_behind(const Fence &fence) noexcept
{
    return !fence.device.host && is_forked_child();
}

bool is_reached(const Fence &fence)
{
    if (is_left_behind(fence)) return true;
    int32_t reached = 0;
    Device &device = fence.device;
    check_backend(device.backend->event_query(device.handle, fence.event, &reached), "event_query",
                  device.name.c_str());
    return reached != 0;
}

void wait_fence_native(Device &device, void *native, const Fence &fence)
{
    check_usable(fence.device);
    if (device.backend == fence.device.backend)
        check_backend(device.backend->event_wait(device.handle, fence.event, native), "event_wait",
                      device.name.c_str());
    else
        wait_here(fence);
}

void wait_fence(Device &device, uint8_t id, const Fence &fence)
{
    wait_fence_native(device, id ? table_of(device).lanes[id].native : nullptr, fence);
    if (fence.lane && fence.lane->device == &device)
        note_order(device, id, *fence.lane, fence.number);
}

void note_order(Device &device, uint8_t lane, const Lane &other, uint64_t number)
{
    if (lane == other.id) return;
    StreamTable &table = table_of(device);
    const std::lock_guard lock(table.order_mutex);
    uint64_t &known = table.order[{lane, other.id}];
    known = std::max(known, number);
}

uint64_t known_behind(Device &device, uint8_t lane, uint8_t other)
{
    if (device.host || !device.backend->event_create) return 0;
    StreamTable &table = table_of(device);
    const std::lock_guard lock(table.order_mutex);
    const auto found = table.order.find({lane, other});
    return found == table.order.end() ? 0 : found->second;
}

const std::atomic<uint64_t> &fences_of(Device &device, uint8_t lane)
{
    static const std::atomic<uint64_t> none{0};
    return device.host || !device.backend->event_create ? none
                                                        : table_of(device).lanes[lane].fences;
}

void wait_event(Stream &stream, const Event &event)
{
    check_not_capturing("Stream.wait_event");
    Device &device = usable_device(stream);
    const std::lock_guard lock(event.mutex);
    if (const Fence *fence = event.fence.load(std::memory_order_acquire))
        wait_fence_native(device, stream.lane.native, *fence);
    if (event.lane && event.lane->device == &device)
        note_order(device, stream.lane.id, *event.lane, event.number);
}

Ref<Event> make_event(bool timing)
{
    return Ref<Event>::adopt(new Event(timing));
}

void record_event(Event &event, Stream &stream)
{
    check_not_capturing("Event.record");
    Device &device = usable_device(stream);
    if (!device.backend->event_create) fail_no_streams(device);
    const Fence &fence = fence_of(event, device);
    if (&fence.device != &device)
        fail(
            YOKE_E_VALUE,
            "record_event: the event was first recorded on %s, but the stream is on %s; create another event, because an event belongs to one device",
            fence.device.name.c_str(), device.name.c_str());
    const std::lock_guard lock(event.mutex);
    // Memory may wait for the replaced record, so the new record must come later on any stream.
    if (fence.use_count() > 1 && event.lane && event.lane != &stream.lane)
        wait_fence_native(device, stream.lane.native, fence);
    const uint64_t number = stream.lane.fences.fetch_add(1) + 1;  // before the record, as a fence's
    check_backend(device.backend->event_record(device.handle, fence.event, stream.lane.native),
                  "event_record", device.name.c_str());
    event.lane = &stream.lane;
    event.number = number;
}

bool is_reached(const Event &event)
{
    const Fence *fence = usable_fence(event);
    if (!fence) return true;
    if (!is_reached(*fence) || has_unsettled(fence->device)) return false;
    raise_deferred_error(fence->device);
    return true;
}

void synchronize(const Event &event)
{
    check_not_capturing("Event.synchronize");
    const Fence *fence = usable_fence(event);
    if (!fence) return;
    raise_deferred_error(fence->device);
    wait_here(*fence);
    raise_deferred_error(fence->device);
}

double elapsed_seconds(const Event &start, const Event &end)
{
    const Fence &first = recorded_fence(start, "first"), &last = recorded_fence(end, "second");
    Device &device = first.device;
    if (&device != &last.device)
        fail(
            YOKE_E_VALUE,
            "elapsed_time: the events are on %s and %s; both must be on the same device, because each device has its own clock",
            device.name.c_str(), last.device.name.c_str());
    double seconds = 0;
    check_backend(device.backend->event_elapsed(device.handle, first.event, last.event, &seconds),
                  "event_elapsed", device.name.c_str());
    return seconds;
}

}  // namespace yoke

yoke_event::~yoke_event()
{
    if (yoke::Fence *made = fence.load()) made->release();
}
