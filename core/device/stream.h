// stream.h: streams and events of a device, and the calling thread's stream.
//
// The allocator and the launches know a stream only by its lane: a number below 256 for each stream of a device, 0
// for the default stream. A lane outlives its stream, so a block may be freed on its lane at any time:
// - The lane of Yoke's own stream rests with its native handle until the next stream is requested. So a stream is
//   never destroyed while blocks wait for it.
// - The lane of the host program's stream keeps a fence behind the last work given to it. The next stream of this
//   lane waits for the fence.
//
// Streams of the host device ("cpu") run at once in the caller: its memory is all of lane 0.
#pragma once

#include "core/base/thread_state.h"
#include "core/device/device.h"

namespace yoke {

inline constexpr int kMaxLanes = 256;

class Fence;

// Lane of a device, kept for ever. Its fields change only under the table's lock, and only without a stream on the
// lane.
struct Lane {
    Device *device = nullptr;
    uint8_t id = 0;
    bool open = false;     // `native` can be given work
    bool wrapped = false;  // a stream of the host program
    int32_t priority = 0;
    int32_t handles = 0;                      // streams over it
    void *native = nullptr;                   // the backend's stream
    Ref<Fence> behind;                        // last work of a lane that is not open
    mutable std::atomic<uint64_t> fences{0};  // number of fences put on the lane
};

// Point in the work of a stream: a native event. Native events without timing, used only by the core, are reused.
class Fence final : public RefCounted {
public:
    // Takes over the native event `e`. `l`: lane of the work before the fence; null for an event of a script, which
    // may be recorded on any stream.
    Fence(Device &d, void *e, const Lane *l)
        : device(d), event(e), lane(l), number(l ? l->fences.fetch_add(1) + 1 : 0)
    {
    }
    Device &device;
    void *const event;
    const Lane *const lane;
    const uint64_t number;  // among the lane's fences; given before the event is recorded

    // Returns whether this fence covers `other`: both are of the same lane, and this fence is later.
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

// Event of a script. It belongs to the device of its first record; before that, it counts as reached.
struct yoke_event final : yoke::RefCounted {
    explicit yoke_event(bool timed) : timing(timed) {}
    const bool timing;
    std::atomic<yoke::Fence *> fence{nullptr};
    // Last record: the lane of its stream, and its number among the lane's fences. The lock keeps the record
    // unchanged while streams are ordered behind it.
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

// Returns the lane of the calling thread's stream; nullptr means the default stream.
inline const Lane *current_lane(const Device &device) noexcept
{
    if (!device.has_side_streams.load(std::memory_order_relaxed)) [[likely]]
        return nullptr;
    if (device.ordinal >= kStreamDevices) return nullptr;
    const ThreadState *state = known_thread_state();
    const Stream *stream = state ? state->streams[device.ordinal] : nullptr;
    return stream ? &stream->lane : nullptr;
}

// Returns the backend's handle of the calling thread's stream; nullptr means the default stream.
inline void *current_native(const Device &device) noexcept
{
    const Lane *lane = current_lane(device);
    return lane ? lane->native : nullptr;
}

// Returns the lane of memory that the calling thread takes or uses now; 0 on the host device.
inline uint8_t memory_lane(const Device &device) noexcept
{
    const Lane *lane = current_lane(device);
    return lane && !device.host ? lane->id : 0;
}

Ref<Stream> current_stream(Device &device);
void set_current_stream(Stream &stream);

// ---- Streams --------------------------------------------------------------------------------------

// Returns a stream of the device: a new stream, or a released stream without work. Streams of greater priority run
// first if the backend supports priorities. Raises YOKE_E_UNSUPPORTED if the backend has no streams, YOKE_E_FORKED in
// a forked child.
Ref<Stream> make_stream(Device &device, int32_t priority);

// Wraps a stream of the host program, nullptr for the default stream. The wrapper lives as long as its last handle;
// the host program destroys the stream afterwards. Raises YOKE_E_VALUE for the host device, which has no native
// streams. Raises YOKE_E_VALUE also for CUDA's per-thread default stream, whose handle means another stream in each
// thread.
Ref<Stream> wrap_stream(Device &device, void *native);

void synchronize(Stream &stream);
bool is_idle(Stream &stream);
// Returns whether no stream of the device has work.
bool is_idle(Device &device);

// Makes later work of the stream wait for the last record of `event`; does nothing if the event was never recorded.
// For an event of another backend, the caller waits itself.
void wait_event(Stream &stream, const Event &event);

// ---- Events ---------------------------------------------------------------------------------------

Ref<Event> make_event(bool timing);
void record_event(Event &event, Stream &stream);
bool is_reached(const Event &event);
void synchronize(const Event &event);
// Returns the seconds between two reached events. Raises YOKE_E_VALUE for events without timing or of two devices,
// YOKE_E_STATE for an event not recorded or not reached.
double elapsed_seconds(const Event &start, const Event &end);

// ---- Order of the allocator and copies -------------------------------------------------------------

namespace detail {
uint8_t find_lane(Device &device, void *native);
}  // namespace detail

// Returns the lane of a native handle; 0 for null and on the host device. An unwrapped handle gets a lane for ever.
inline uint8_t lane_of(Device &device, void *native)
{
    return native ? detail::find_lane(device, native) : 0;
}

// Returns a fence behind all work given to the lane so far; null if there is no work to wait for. If the backend has
// no events, waits for the device and returns null.
Ref<Fence> fence_behind(Device &device, uint8_t lane);
// Returns whether all work before the fence is done, without waiting. In a forked child, work of the parent's device
// counts as done: its memory here is a copy.
bool is_reached(const Fence &fence);
bool is_left_behind(const Fence &fence) noexcept;
// Orders later work of the lane's stream, or of the native stream, behind the fence. The caller goes on, except that
// for a fence of another backend the caller waits itself.
void wait_fence(Device &device, uint8_t lane, const Fence &fence);
void wait_fence_native(Device &device, void *native, const Fence &fence);

// Returns the counter of the fences put on a lane. Work given to the lane before the counter is read stands before
// each fence of a higher number.
const std::atomic<uint64_t> &fences_of(Device &device, uint8_t lane);
// Returns the number of the last fence of `other` known to precede all further work of the lane; 0 if unknown.
uint64_t known_behind(Device &device, uint8_t lane, uint8_t other);

// Waits for the lane's work, or for all of the device's work if the backend cannot separate streams. Returns the
// backend's status and leaves its message.
yoke_status synchronize_lane(Device &device, uint8_t lane) noexcept;

// Number of bits in a set of lanes as Storage keeps it: bit i is lane i, the last bit every lane from there on.
inline constexpr int kLaneBits = 16;
inline uint16_t lane_bit(uint8_t lane) noexcept
{
    return static_cast<uint16_t>(1u << (lane < kLaneBits ? lane : kLaneBits - 1));
}
int lane_count(Device &device) noexcept;
// Calls visit(lane) for each lane of the device in the set `uses`.
template <class Visit>
void each_lane(Device &device, uint16_t uses, Visit visit)
{
    const int count = uses ? lane_count(device) : 0;
    for (int lane = 0; lane < count; ++lane)
        if (uses & lane_bit(static_cast<uint8_t>(lane))) visit(static_cast<uint8_t>(lane));
}

namespace detail {
// Releases the stream. Implements an entry of core/base/lent.h.
void drop_stream(Stream *stream) noexcept;
}  // namespace detail

}  // namespace yoke
