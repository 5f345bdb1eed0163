// failure.h: why a group has failed, and what ends then: calls of its engine, and waits in the store.
//
// All ranks raise the cause of whatever failed first on any rank, from the call under way and from each later call.
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

// The failure of one group, which happens once. Any thread may call it. Under its lock it ends views of the store and
// the engine, and asks Departures; it holds no lock while it writes or agrees with other ranks.
class Failure {
public:
    // Function that returns what a dump tells of the group, which is about to fail with that cause.
    using Look = std::function<Dump(const Cause &)>;
    Failure(const Members &members, const GroupKeys &keys, Departures &departures, Look look);

    bool is_failed() const noexcept { return is_failed_.load(std::memory_order_acquire); }
    // Publishes why this rank fails, and fails the group with the cause that stands on all ranks. `timeout_s`: for the
    // answer of the store. Does nothing in a group that has failed.
    void fail(const Cause &mine, double timeout_s = 1) noexcept;
    // Fails the group with a cause that stands already.
    void fail_with(const Cause &cause) noexcept;
    // Raises the cause if the group has failed, and names `call` in it if no call is named yet; no device tells of the
    // failure any more. The process may end once the caller knows the cause, so this waits until the dump is written.
    void raise_if_failed(const char *call);
    // Raises the cause amid a call that runs: if nobody waits for the call, its device tells of the failure.
    void raise_amid(const char *call);
    // Has no device tell of the failure any more: the script knows it, or has ended the group itself.
    void silence_devices() noexcept;
    // Waits for a cause that this rank is about to hear, for a second at most. Returns if none has come; else raises
    // it.
    void await(const char *call);
    // Fails with what happened to this rank alone, where the others wait, and raises the cause that stands.
    [[noreturn]] void fail_alone(const char *call, const Cause &mine);
    // Raises the cause if the table has gone with its keeper. If the keeper is no rank of this group, raises
    // YOKE_E_COMM, and the group goes on. Returns if the table is there, or is only slow.
    void check_table(const char *call);

    // Returns the cause, or nothing in a group that has not failed. The text names the call that raised the cause
    // first. `at_s`: when the group failed.
    std::optional<Cause> cause(double *at_s = nullptr) const;
    // Notes that this rank knows the cause: a call raised it, or this rank called abort.
    void note_told() noexcept;
    // Returns whether this rank knew the cause before the node of that number was recorded.
    bool was_told_before(uint64_t sequence) const noexcept;
    // Waits until the dump that YOKE_COMM_DUMP asks for is written.
    void await_dump() const noexcept;
    // Writes a dump of a group that has not failed, if YOKE_COMM_DUMP asks for dumps.
    void dump_of(const Cause &cause) const noexcept;

    // Notes the engine, whose calls end when the group fails: at once in a group that has failed.
    void attach(const std::shared_ptr<Engine> &engine);
    // Does the same for the engine of a device.
    void attach(const std::shared_ptr<DeviceEngine> &engine);
    bool is_made() const noexcept;
    std::shared_ptr<Engine> engine() const noexcept;  // null before
    // Notes a view of the store in which a call of the group waits: the view ends when the group fails and, if
    // `ends_with_a_rank`, when a rank dies. Raises the cause in a group that has failed. Returns how many ranks had
    // died by then.
    size_t add_view(const std::shared_ptr<Store> &view, bool ends_with_a_rank, const char *call);
    void remove_view(const std::shared_ptr<Store> &view) noexcept;
    // Notes that a rank has gone, as Departures has it. If it died, views end that say so.
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
    Cause name_by(const char *call);  // of a failed group

    const Members &members_;
    const GroupKeys &keys_;
    Departures &departures_;
    const Look look_;
    const std::shared_ptr<FailuresOfDevices> devices_ = std::make_shared<FailuresOfDevices>();
    std::atomic<bool> is_failed_{false};
    std::optional<Failed>
        failed_;  // is not written after is_failed_ is true, so readers take no lock
    std::atomic<const char *> named_by_{
        nullptr};  // the call that raised a cause without a call first
    std::atomic<uint64_t> told_at_{UINT64_MAX};
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    GroupEngines engines_;
    std::vector<View> views_;
};

}  // namespace yoke
