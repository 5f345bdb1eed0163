#include "core/device/stream.h"

#include "core/backend/traits.h"
#include "core/base/log.h"
#include "core/device/capture.h"
#include "core/device/deferred_error.h"
#include "core/device/inner_stream.h"
#include "core/device/kinds.h"
#include "core/device/stream_table.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace yoke {

namespace {

// Returns whether a fork left the device behind: its handles may only be dropped.
bool is_lost(const Device &device)
{
    return !device.host && is_forked_child();
}

// Returns a new handle of the lane. The caller holds the table's lock.
Ref<Stream> stream_on(Lane &lane)
{
    Ref<Stream> made = Ref<Stream>::adopt(new Stream(lane));
    ++lane.handles;
    return made;
}

bool is_idle_native(Device &device, void *native)
{
    int32_t idle = 0;
    check_backend(device.backend->stream_query(device.handle, native, &idle), "stream_query",
                  device.name.c_str());
    return idle != 0;
}

// Returns the native handle, after a check for two special handles of CUDA that are no pointers. For
// cudaStreamLegacy, another name of the default stream, returns nullptr. For cudaStreamPerThread, raises
// YOKE_E_VALUE: a fence on this stream would stand behind the waiting thread's work, not behind the work of the
// thread that gave the memory.
void *checked_native(const Device &device, void *native, const char *call)
{
    constexpr uintptr_t kLegacy = 1, kPerThread = 2;
    const auto number = reinterpret_cast<uintptr_t>(native);
    if (number != kLegacy && number != kPerThread) return native;
    if (!traits_of(device.kind()).has_stream_names) return native;
    if (number == kPerThread)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'native' is 2, cudaStreamPerThread, which is a different stream in each thread; give a stream of cudaStreamCreate, or 0 for the default stream",
            call);
    return nullptr;
}

// Returns a released lane of this priority without work, or nullptr. A lane with work stays, so that a new stream
// does not begin behind older work.
Lane *take_resting(StreamTable &table, int32_t priority)
{
    for (auto at = table.resting.begin(); at != table.resting.end(); ++at) {
        Lane *lane = *at;
        if (lane->priority != priority || !is_idle_native(*lane->device, lane->native)) continue;
        table.resting.erase(at);
        return lane;
    }
    return nullptr;
}

std::span<Lane> used_lanes(StreamTable &table)
{
    return {table.lanes, static_cast<size_t>(table.count.load())};
}

// Returns a used lane without a stream: the lane that had this handle, else the first; nullptr if all have a stream.
Lane *find_closed(StreamTable &table, const void *native)
{
    Lane *chosen = nullptr;
    for (Lane &lane : used_lanes(table).subspan(1)) {
        if (lane.open) continue;
        if (lane.native == native) return &lane;
        if (!chosen) chosen = &lane;
    }
    return chosen;
}

Lane &choose_lane(StreamTable &table, Device &device, const void *native)
{
    if (Lane *closed = find_closed(table, native)) return *closed;
    const int count = table.count.load();
    if (count == kMaxLanes)
        fail(YOKE_E_STATE, "%s has %d streams in use, the maximum; release some streams",
             device.name.c_str(), kMaxLanes - 1);
    Lane &lane = table.lanes[count];
    lane.device = &device;
    lane.id = static_cast<uint8_t>(count);
    table.count.store(count + 1, std::memory_order_release);
    return lane;
}

Ref<Stream> open_lane(StreamTable &table, Device &device, void *native, int32_t priority,
                      bool wrapped)
{
    Lane &lane = choose_lane(table, device, native);
    if (lane.behind.present()) wait_fence_native(device, native, *lane.behind);
    Ref<Stream> made = stream_on(lane);
    {
        const std::lock_guard lock(table.order_mutex);
        std::erase_if(table.order, [&](const auto &each) { return each.first.first == lane.id; });
    }
    lane.behind = nullptr;
    lane.native = native;
    lane.priority = priority;
    lane.wrapped = wrapped;
    lane.open = true;
    device.has_side_streams.store(true, std::memory_order_release);
    return made;
}

Lane *find_open(StreamTable &table, const void *native)
{
    for (Lane &lane : used_lanes(table))
        if (lane.open && lane.native == native) return &lane;
    return nullptr;
}

// Retires a stream of the host program: from now on, its lane waits only for the work given so far.
void retire(Lane &lane) noexcept
{
    Device &device = *lane.device;
    if (!is_lost(device)) {
        try {
            lane.behind = make_fence(lane);
        } catch (const std::exception &error) {
            log(LogLevel::kError, "%s: the end of a wrapped stream's work is not known: %s",
                device.name.c_str(), error.what());
            static_cast<void>(device.backend->stream_synchronize(device.handle, lane.native));
        }
    }
    lane.open = false;
}

void drop_handle(Lane &lane) noexcept
{
    if (lane.id == 0) return;
    StreamTable &table = table_of(*lane.device);
    const std::lock_guard lock(table.mutex);
    if (--lane.handles) return;
    table.inner.reset(lane.id);
    if (lane.wrapped)
        retire(lane);
    else
        table.resting.push_back(&lane);  // the capacity is enough for all lanes
}

}  // namespace

void detail::drop_stream(Stream *stream) noexcept
{
    stream->release();
}

StreamTable::StreamTable(Device &device)
{
    resting.reserve(kMaxLanes);
    spare_events.reserve(kMostSpareEvents);
    lanes[0].device = &device;
    lanes[0].open = true;
    first = stream_on(lanes[0]);
}

int64_t detail::live_streams(Device &device, size_t most, std::vector<std::string> &names)
{
    if (!device.streams.load()) return 0;
    StreamTable &table = table_of(device);
    const std::lock_guard lock(table.mutex);
    int64_t handles = 0;
    for (const Lane &lane : used_lanes(table).subspan(1))
        if (!table.inner[lane.id]) handles += lane.handles;
    handles -= static_cast<int64_t>(
        table.named.size());  // streams made for bare native handles, not by a script
    if (handles > 0 && most > 0)
        names.push_back(format("%lld stream%s of %s", static_cast<long long>(handles),
                               handles == 1 ? "" : "s", device.name.c_str()));
    return handles > 0 ? 1 : 0;
}

StreamTable &table_of(Device &device)
{
    return make_once(device.streams, [&] { return new StreamTable(device); });
}

void fail_no_streams(const Device &device)
{
    fail(YOKE_E_UNSUPPORTED, "%s has only the default stream", device.kind());
}

static void need_streams(const Device &device)
{
    if (!device.backend->stream_create || !device.backend->event_create) fail_no_streams(device);
}

Device &usable_device(const Stream &stream)
{
    Device &device = *stream.lane.device;
    check_usable(device);
    return device;
}

Ref<Stream> current_stream(Device &device)
{
    Stream *chosen =
        device.ordinal < kStreamDevices ? thread_state().streams[device.ordinal] : nullptr;
    return chosen ? Ref<Stream>::share(chosen) : table_of(device).first;
}

void set_current_stream(Stream &stream)
{
    Device &device = usable_device(stream);
    const bool is_default = stream.lane.id == 0;
    if (device.ordinal >= kStreamDevices) {
        if (is_default) return;
        fail(
            YOKE_E_UNSUPPORTED,
            "%s is device %d of this process; a thread can use streams of the first %d devices only",
            device.name.c_str(), device.ordinal, kStreamDevices);
    }
    Stream *&place = thread_state().streams[device.ordinal];
    if (!is_default) stream.retain();
    Stream *before = place;
    place = is_default ? nullptr : &stream;
    if (before) before->release();
}

static Ref<Stream> resting_stream(StreamTable &table, int32_t priority)
{
    const std::lock_guard lock(table.mutex);
    Lane *lane = take_resting(table, priority);
    return lane ? stream_on(*lane) : nullptr;
}

Ref<Stream> make_stream(Device &device, int32_t priority)
{
    check_usable(device);
    need_streams(device);
    const yoke_backend &backend = *device.backend;
    StreamTable &table = table_of(device);
    if (Ref<Stream> resting = resting_stream(table, priority); resting.present()) return resting;
    void *native = nullptr;
    check_backend(backend.stream_create(device.handle, priority, &native), "stream_create",
                  device.name.c_str());
    try {
        const std::lock_guard lock(table.mutex);
        return open_lane(table, device, native, priority, false);
    } catch (...) {
        static_cast<void>(backend.stream_destroy(device.handle, native));
        throw;
    }
}

Ref<Stream> make_inner_stream(Device &device)
{
    Ref<Stream> made = make_stream(device, 0);
    StreamTable &table = table_of(device);
    const std::lock_guard lock(table.mutex);
    table.inner.set(made->lane.id);
    return made;
}

Ref<Stream> wrap_stream(Device &device, void *native)
{
    check_usable(device);
    native = checked_native(device, native, "wrap_stream");
    StreamTable &table = table_of(device);
    if (!native) return table.first;
    if (device.host)
        fail(
            YOKE_E_VALUE,
            "%s runs work in the calling thread and has no streams to wrap; create a stream with Stream()",
            device.name.c_str());
    need_streams(device);
    const std::lock_guard lock(table.mutex);
    if (Lane *lane = find_open(table, native)) {
        // A resting stream of Yoke is in use again.
        std::erase(table.resting, lane);
        return stream_on(*lane);
    }
    return open_lane(table, device, native, 0, true);
}

void synchronize(Stream &stream)
{
    check_not_capturing("Stream.synchronize");
    Device &device = usable_device(stream);
    raise_deferred_error(device);
    check_backend(synchronize_lane(device, stream.lane.id),
                  ("synchronize a stream of " + device.name).c_str(), device.name.c_str());
    raise_deferred_error(device);
}

bool is_idle(Stream &stream)
{
    Device &device = usable_device(stream);
    if (!device.backend->stream_query) fail_no_streams(device);
    if (!is_idle_native(device, stream.lane.native) || has_unsettled(device)) return false;
    raise_deferred_error(device);
    return true;
}

bool is_idle(Device &device)
{
    StreamTable &table = table_of(device);
    const std::lock_guard lock(table.mutex);
    for (const Lane &lane : used_lanes(table))
        if (lane.open && !is_idle_native(device, lane.native)) return false;
    return true;
}

uint8_t detail::find_lane(Device &device, void *native)
{
    native = checked_native(device, native, "alloc");
    if (!native || device.host) return 0;
    if (const Lane *lane = current_lane(device); lane && lane->native == native) return lane->id;
    need_streams(device);
    StreamTable &table = table_of(device);
    const std::lock_guard lock(table.mutex);
    if (const Lane *lane = find_open(table, native)) return lane->id;
    table.named.reserve(table.named.size() + 1);
    table.named.push_back(open_lane(table, device, native, 0, true));
    return table.named.back()->lane.id;
}

int lane_count(Device &device) noexcept
{
    const StreamTable *table = device.streams.load(std::memory_order_acquire);
    return table ? table->count.load(std::memory_order_acquire) : 1;
}

yoke_status synchronize_lane(Device &device, uint8_t id) noexcept
{
    const yoke_backend &backend = *device.backend;
    if (!backend.stream_synchronize) return backend.device_synchronize(device.handle);
    if (id == 0) return backend.stream_synchronize(device.handle, nullptr);
    StreamTable &table = table_of(device);
    const Lane &lane = table.lanes[id];
    try {
        Ref<Fence> behind;
        {
            const std::lock_guard lock(table.mutex);
            // The host program may end its stream as soon as the lock is free.
            behind = lane.open && lane.wrapped ? make_fence(lane) : lane.behind;
        }
        if (behind.present()) return backend.event_synchronize(device.handle, behind->event);
        return lane.wrapped ? YOKE_OK : backend.stream_synchronize(device.handle, lane.native);
    } catch (const std::exception &error) {
        // No fence can be made. The memory freed next by the caller must not go back before its work has ended.
        yoke_status status = YOKE_OK;
        if (wait_for_whole(device, &status)) return status;
        {
            // A graph of the device is being captured. The lock keeps the host program's stream alive.
            const std::lock_guard lock(table.mutex);
            if (lane.open) return backend.stream_synchronize(device.handle, lane.native);
        }
        const auto *told = dynamic_cast<const Error *>(&error);
        return set_backend_error(told ? told->status() : YOKE_E_OOM, told ? told->native_code() : 0,
                                 error.what());
    }
}

}  // namespace yoke

void yoke_stream::destroy() noexcept
{
    yoke::drop_handle(lane);
    delete this;
}
