// comm_lane.h: the stream of a device for the collectives of all groups.
//
// If each group had its own stream, ranks could launch on their streams in unlike orders. The library of the engine
// would then wait for its own kernels.
#pragma once

#include "core/backend/comm.h"
#include "core/base/deadline.h"
#include "core/base/script.h"
#include "core/device/stream.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace yoke {

class CommLane {
public:
    // Returns the only lane of the device, and makes it at first need. The lane lives until its last holder releases
    // it. Raises YOKE_E_UNSUPPORTED if the backend has no streams.
    static std::shared_ptr<CommLane> of(Device &device);

    explicit CommLane(Device &device);
    CommLane(const CommLane &) = delete;
    CommLane &operator=(const CommLane &) = delete;

    Device &device() const noexcept { return *stream_->lane.device; }
    Stream &stream() const noexcept { return *stream_; }
    uint8_t id() const noexcept { return stream_->lane.id; }
    // Counts a call on the stream, and returns its place. Only the thread with the turn calls this.
    uint64_t next_place() noexcept { return ++places_; }

    // Call of the thread with the turn, for people.
    struct User {
        yoke_comm_signature signature{};
        const ScriptLine *line = nullptr;
        int32_t from = -1;  // sender of a recv
    };
    // Scope in which only this thread gives calls their places, in the orders of their group and of the stream.
    class Turn {
    public:
        // Takes the turn when no other thread has it. Gives up at the deadline, or when is_over() is true; is_given()
        // is then false.
        template <class F>
        Turn(CommLane &lane, Deadline deadline, const F &is_over);
        ~Turn();
        Turn(Turn &&other) noexcept : lane_(std::exchange(other.lane_, nullptr)) {}
        Turn &operator=(Turn &&) = delete;
        bool is_given() const noexcept { return lane_ != nullptr; }
        // Publishes the call of this turn to other threads.
        void note_user(const User &user) noexcept;

    private:
        CommLane *lane_ = nullptr;  // null: no turn was given
    };
    // Returns the call published by the thread with the turn; null if there is no such call.
    std::optional<User> user() const noexcept;

private:
    const Ref<Stream> stream_;
    std::timed_mutex turn_;
    uint64_t places_ = 0;
    mutable std::mutex mutex_;  // guards the fields below
    std::optional<User> user_;
};

template <class F>
CommLane::Turn::Turn(CommLane &lane, Deadline deadline, const F &is_over)
{
    constexpr std::chrono::milliseconds kLook{20};
    bool is_given = lane.turn_.try_lock();
    while (!is_given && !deadline.has_passed() && !is_over())
        is_given = lane.turn_.try_lock_for(kLook);
    if (is_given) lane_ = &lane;
}

}  // namespace yoke
