// stream.h: streams and events of a device, and which stream the calling thread gives its work to.
//
// What the allocator and the launches know of a stream is its lane: a number below 256 for each stream of a device,
// 0 for the default one. A lane outlives the stream. That of a stream of ours rests, native handle and all, until the
// next stream is asked for, so that a stream is never destroyed under blocks that wait for it. That of a stream which
// the host wrapped keeps a fence behind the last work that was given to it, and the next stream of that lane
// waits for the fence. So a block may be freed on its lane at any time, whatever became of the stream.
//
// Streams of the host device ("cpu") run at once in the caller: its memory is all of lane 0.
#pragma once

#include "core/base/thread_state.h"
#include "core/device/device.h"

namespace yoke {

inline constexpr int kMaxLanes = 256;

class Fence;

// Of one device, for ever. What may change does so under the table's lock while no stream is on it.
struct Lane {
    Device *device = nullptr;
    uint8_t id = 0;
    bool open = false;     // `native` can be given work
    bool wrapped = false;  // the host's own stream
    int32_t priority = 0;
    int32_t handles = 0;                      // streams over it
    void *native = nullptr;                   // the backend's stream
    Ref<Fence> behind;                        // of a lane that is not open: its last work
    mutable std::atomic<uint64_t> fences{0};  // that were put on it
};

// A point in the work of one stream: a native event. Those that keep no time and serve the core alone are used again.
class Fence final : public RefCounted {
public:
    // `l`: the lane whose work it stands behind; null for an event of a script, which may be recorded anywhere.
    Fence(Device &d, void *e, const Lane *l)
        : device(d), event(e), lane(l), number(l ? l->fences.fetch_add(1) + 1 : 0)
    {
    }
    Device &device;
    void *const event;
    const Lane *const lane;
    const uint64_t number;  // among the lane's fences; given before the event is recorded

    // Whether this fence covers what `other` stands behind: they are of one lane, and this one is the later one.
    bool is_behind(const Fence &other) const noexcept
    {
        return lane && lane == other.lane && number > other.number;
    }

protected:
    void destroy() noexcept override;
};

}  // namespace yoke

struct yoke_stream final : yoke::RefCounted {
    explicit yoke_stream(yoke::Lane &l) : lane(l) {}
    yoke::Lane &lane;

protected:
    void destroy() noexcept override;
};

// Belongs to the device of its first record; before that it counts as reached.
struct yoke_event final : yoke::RefCounted {
    explicit yoke_event(bool timed) : timing(timed) {}
    const bool timing;
    std::atomic<yoke::Fence *> fence{nullptr};
    // The last record, which the lock keeps as it is while streams are made to wait for it: its stream's lane, and its
    // number among the lane's fences.
    mutable yoke::Mutex mutex{yoke::LockRank::kDevices};
    const yoke::Lane *lane = nullptr;
    uint64_t number = 0;

protected:
    ~yoke_event() override;
};

namespace yoke {

using Stream = ::yoke_stream;
using Event = ::yoke_event;

// ---- The calling thread's stream ------------------------------------------------------------------

// nullptr: the default one.
inline const Lane *current_lane(const Device &device) noexcept
{
    if (!device.has_side_streams.load(std::memory_order_relaxed)) [[likely]]
        return nullptr;
    if (device.ordinal >= kStreamDevices) return nullptr;
    const ThreadState *state = known_thread_state();
    const Stream *stream = state ? state->streams[device.ordinal] : nullptr;
    return stream ? &stream->lane : nullptr;
}

// The handle that the backend knows it by.
inline void *current_native(const Device &device) noexcept
{
    const Lane *lane = current_lane(device);
    return lane ? lane->native : nullptr;
}

// The lane of memory that is taken or used now.
inline uint8_t memory_lane(const Device &device) noexcept
{
    const Lane *lane = current_lane(device);
    return lane && !device.host ? lane->id : 0;
}

Ref<Stream> current_stream(Device &device);
void set_current_stream(Stream &stream);

// ---- Streams --------------------------------------------------------------------------------------

// A stream of the device; greater priorities run first where it knows them. Raises YOKE_E_UNSUPPORTED where the backend
// has no streams, YOKE_E_FORKED in a forked child.
Ref<Stream> make_stream(Device &device, int32_t priority);

// A stream that the host made, nullptr for the default one. It lives until the last handle to it is gone, and is then
// still the host's to destroy. Raises YOKE_E_VALUE for the host device, whose streams are no one's to make, and for
// CUDA's per-thread default stream, which one handle names in every thread.
Ref<Stream> wrap_stream(Device &device, void *native);

void synchronize(Stream &stream);
bool is_idle(Stream &stream);
// Whether no stream of the device has work.
bool is_idle(Device &device);

// The stream does what follows after `event`; an event of another backend is waited for by the caller.
void wait_event(Stream &stream, const Event &event);

// ---- Events ---------------------------------------------------------------------------------------

Ref<Event> make_event(bool timing);
void record_event(Event &event, Stream &stream);
bool is_reached(const Event &event);
void synchronize(const Event &event);
// Raises YOKE_E_VALUE for events without timing or of two devices, YOKE_E_STATE for one that was not recorded or is not
// reached.
double elapsed_seconds(const Event &start, const Event &end);

// ---- What the allocator and copies order by -------------------------------------------------------

namespace detail {
uint8_t find_lane(Device &device, void *native);
}  // namespace detail

// The lane of a native handle; one that nobody wrapped gets a lane for ever.
inline uint8_t lane_of(Device &device, void *native)
{
    return native ? detail::find_lane(device, native) : 0;
}

// Behind all work that was given to the lane so far; null where there is none to wait for.
Ref<Fence> fence_behind(Device &device, uint8_t lane);
// In a forked child the work of a device that was left behind counts as done: its memory here is a copy.
bool is_reached(const Fence &fence);
bool is_left_behind(const Fence &fence) noexcept;
// The lane's stream, or the native one, does what follows after the fence; the caller goes on.
void wait_fence(Device &device, uint8_t lane, const Fence &fence);
void wait_fence_native(Device &device, void *native, const Fence &fence);

// The fences that were put on a lane so far. Work that was given to the lane before this is read stands before each
// fence of a higher number.
const std::atomic<uint64_t> &fences_of(Device &device, uint8_t lane);
// The number of the last fence of `other` that all further work of the lane comes behind; 0 where none is known.
uint64_t known_behind(Device &device, uint8_t lane, uint8_t other);

// Waits for the lane's work, or all of the device's where the backend cannot tell streams apart. Gives the backend's
// status and leaves its message.
yoke_status synchronize_lane(Device &device, uint8_t lane) noexcept;

// Calls visit(lane) for each lane in a set of uses as Storage keeps it: bit i is lane i, the last bit every lane from
// there on.
inline constexpr int kLaneBits = 16;
inline uint16_t lane_bit(uint8_t lane) noexcept
{
    return static_cast<uint16_t>(1u << (lane < kLaneBits ? lane : kLaneBits - 1));
}
int lane_count(Device &device) noexcept;
template <class Visit>
void each_lane(Device &device, uint16_t uses, Visit visit)
{
    const int count = uses ? lane_count(device) : 0;
    for (int lane = 0; lane < count; ++lane)
        if (uses & lane_bit(static_cast<uint8_t>(lane))) visit(static_cast<uint8_t>(lane));
}

namespace detail {
// Of core/base/lent.h.
void drop_stream(Stream *stream) noexcept;
}  // namespace detail

}  // namespace yoke
