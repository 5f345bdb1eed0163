// failure.h: why a group has failed, and what follows from that: its engine and the waits of its calls end.
//
// What fails first on any rank is the cause that all ranks raise, from that call and from each later one.
#pragma once

#include "core/comm/departures.h"
#include "core/comm/dump_failure.h"
#include "core/comm/engine.h"
#include "core/comm/group_keys.h"
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

class Failure {
public:
    // Returns what a dump tells of the group, which is about to fail with that cause.
    using Look = std::function<Dump(const Cause &)>;
    Failure(const Members &members, const GroupKeys &keys, Departures &departures, Look look);

    bool is_failed() const noexcept { return is_failed_.load(std::memory_order_acquire); }
    // Publishes why this rank fails, and fails the group with the cause that stands on all ranks. Does nothing in a
    // group that has failed.
    void fail(const Cause &mine, double timeout_s = 1) noexcept;
    // Fails the group with a cause that stands already.
    void fail_with(const Cause &cause) noexcept;
    // Raises the cause, of which `call` is then told, and no device tells of it any more. A launcher may end a process
    // that is told, so this waits until the dump is written.
    void raise_if_failed(const char *call);
    // The same amid a call that runs: if nobody waits for the call, its device tells of the failure.
    void raise_amid(const char *call);
    // Waits for a cause that this rank is about to hear, for a second at most, and raises it.
    void await(const char *call);
    // Fails with what happened to this rank alone, where the others wait, and raises the cause that stands.
    [[noreturn]] void fail_alone(const char *call, const Cause &mine);
    // Raises the cause where the table has gone with the rank that kept it. Raises YOKE_E_COMM, and the group goes on,
    // where that rank is none of this group's.
    void check_table(const char *call);

    // Returns the cause, the text of which names the call that was told first; nothing before there is one. `at_s`:
    // when the group failed.
    std::optional<Cause> cause(double *at_s = nullptr) const;
    // Notes that this rank was told, by a call that raised the cause or since it called abort.
    void note_told() noexcept;
    // Whether that was before the node of this number was recorded.
    bool was_told_before(uint64_t sequence) const noexcept;
    // Waits until the dump that YOKE_COMM_DUMP asks for is written.
    void await_dump() const noexcept;
    // Writes a dump of a group that has not failed, where one is asked for.
    void dump_of(const Cause &cause) const noexcept;

    // From here on the engine is there, and ends when the group fails.
    void attach(const std::shared_ptr<Engine> &engine);
    bool is_made() const noexcept;
    std::shared_ptr<Engine> engine() const noexcept;  // null before
    // A view of the store that calls of the group wait in: the view ends when the group fails, and where it says so
    // when a rank dies. Raises the cause in a group that has failed.
    // Returns how many ranks had died by then.
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
    std::weak_ptr<Engine> engine_;
    bool is_made_ = false;
    std::vector<View> views_;
};

}  // namespace yoke
