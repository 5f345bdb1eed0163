// failure.h: the failure of a group, and the end of its engine's calls and of its waits in the store.
//
// All ranks raise the cause of the first failure on any rank, from the call under way and from each later call.
#pragma once

#include "core/comm/departures.h"
#include "core/comm/dump_failure.h"
#include "core/comm/engine.h"
#include "core/comm/group_keys.h"
#include "core/comm/late/device_engine.h"
#include "core/comm/staging.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace yoke {

// Failure of a group, which happens once. Any thread may call the functions. Under its lock, the class ends views of
// the store and the engine, and asks Departures. No lock is held while it writes or agrees with other ranks.
class Failure {
public:
    // Function that returns the dump of the group, which is about to fail with this cause.
    using Look = std::function<Dump(const Cause &)>;
    Failure(const Members &members, const GroupKeys &keys, Departures &departures, Look look);

    bool is_failed() const noexcept { return is_failed_.load(std::memory_order_acquire); }
    // Publishes this rank's cause, and fails the group with the standing cause of all ranks. `timeout_s`: for the
    // answer of the store. Does nothing in a failed group.
    void fail(const Cause &mine, double timeout_s = 1) noexcept;
    // Fails the group with a cause that stands for all ranks. Does nothing in a failed group.
    void fail_with(const Cause &cause) noexcept;
    // Raises the cause if the group has failed. If the cause names no call yet, it gets `call`. No device reports the
    // failure after this. The process may end once the caller knows the cause, so this function waits until the dump
    // is written.
    void raise_if_failed(const char *call);
    // Raises the cause amid a running call, if the group has failed. Unlike raise_if_failed, does not silence the
    // devices: if no thread waits for the call, the script learns of the failure from the call's device.
    void raise_amid(const char *call);
    // Stops reports of the failure by devices in a failed group: the script knows the failure, or has ended the group
    // itself.
    void silence_devices() noexcept;
    // Waits at most a second for a cause about to arrive. Raises the cause as raise_if_failed does; returns if no
    // cause arrives.
    void await(const char *call);
    // Fails the group with a problem of this rank alone, while others wait, and raises the standing cause.
    [[noreturn]] void fail_alone(const char *call, const Cause &mine);
    // Checks whether the store has gone with the rank that keeps it. If the keeping rank is in the group, waits for
    // the cause as `await` does. If the keeping rank is outside the group, raises YOKE_E_COMM, and the group goes on.
    // Returns if the store is there, or is only slow.
    void check_table(const char *call);

    // Returns the cause, or null if the group has not failed. The text names the first call that raised the cause.
    // `at_s`: time of the failure.
    std::optional<Cause> cause(double *at_s = nullptr) const;
    // Notes that this rank knows the cause: a call raised it, or this rank called abort.
    void note_told() noexcept;
    // Returns whether this rank knew the cause before the node with this number was recorded.
    bool was_told_before(uint64_t sequence) const noexcept;
    // Waits until the failure's dump for YOKE_COMM_DUMP is written. Returns at once if no dump is wanted.
    void await_dump() const noexcept;
    // Writes a dump of a group that has not failed, if YOKE_COMM_DUMP asks for dumps.
    void dump_of(const Cause &cause) const noexcept;

    // Notes the host engine, whose calls end when the group fails. In a failed group, the calls end at once.
    void attach(const std::shared_ptr<Engine> &engine);
    // Notes the engine of a device. When the group fails, this engine gets the cause, and its calls end. In a failed
    // group, both happen at once.
    void attach(const std::shared_ptr<DeviceEngine> &engine);
    bool is_made() const noexcept;
    std::shared_ptr<Engine> engine() const noexcept;  // null before
    // Notes a view of the store in which a call of the group waits. The view ends when the group fails and, if
    // `ends_with_a_rank`, when a rank dies. Raises the cause in a failed group. Returns the number of ranks dead by
    // then.
    size_t add_view(const std::shared_ptr<Store> &view, bool ends_with_a_rank, const char *call);
    void remove_view(const std::shared_ptr<Store> &view) noexcept;
    // Notes that a rank has left with a goodbye message, or else has died. If the rank died, views with
    // `ends_with_a_rank` end.
    void note_gone(int32_t rank, bool with_farewell) noexcept;

    const std::shared_ptr<FailuresOfDevices> &devices() const noexcept { return devices_; }

private:
    struct Failed {
        Cause cause;
        double at_s;
        std::shared_future<void> dumped;
    };
    struct View {
        std::weak_ptr<Store> store;
        bool ends_with_a_rank;
    };
    FailureDump make_dump(const Cause &cause) const noexcept;
    Cause name_by(const char *call);  // group must have failed

    const Members &members_;
    const GroupKeys &keys_;
    Departures &departures_;
    const Look look_;
    const std::shared_ptr<FailuresOfDevices> devices_ = std::make_shared<FailuresOfDevices>();
    std::atomic<bool> is_failed_{false};
    std::optional<Failed>
        failed_;  // is not written after is_failed_ is true, so readers take no lock
    std::atomic<const char *> named_by_{nullptr};  // first call that raised a cause without a call
    std::atomic<uint64_t> told_at_{UINT64_MAX};
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    GroupEngines engines_;
    std::vector<View> views_;
};

}  // namespace yoke
