// call_issuer.h: the way of a checked call to the queue of its group, and to the stream of a device.
#pragma once

#include "core/comm/call_queue.h"
#include "core/comm/call_runner.h"
#include "core/comm/failure.h"
#include "core/comm/late/device_calls.h"

#include <sys/types.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

namespace yoke {

// The issuer has no lock, because the queue or the lane of a device orders the calls.
class CallIssuer {
public:
    CallIssuer(const Members &members, const GroupOptions &options, const GroupKeys &keys,
               const Departures &departures, Failure &failure, CallRunner &runner,
               CallQueue &calls);

    // Returns false in a forked child of the process that made the group.
    bool is_here() const noexcept;
    void check_process() const;  // raises YOKE_E_FORKED in a forked child
    // Does the same, and raises the group's cause.
    void check_running(const char *call);

    // Raises YOKE_E_STATE for a call outside a coalesce if the calling thread may have the other ranks.
    void check_coalesced(const char *call, bool is_coalesced) const;

    // Makes a call ready. An asynchronous call gets a work. A call on tensors of a device becomes a `LateCall` or is
    // staged. The first call on a device makes the group's communicator there.
    IssuedCall prepare(Collective call, bool is_async);
    // Issues a call. A blocking call is done after the return; on a device, the current stream then comes behind the
    // call.
    void issue(IssuedCall issued);

    // Calls of a group, issued together with calls of other groups.
    struct Together {
        CallIssuer *of;
        std::vector<IssuedCall> calls;
        std::exception_ptr failure = {};  // reason, if not issued
        bool were_issued = false;         // their works report their failures
    };
    // Issues calls of several groups; no send or receive among these calls waits for another. Blocking calls are done
    // after the return, or have a work in the result for the caller to wait for.
    static std::vector<Ref<Work>> issue_together(const std::vector<Together *> &groups);

    // Returns each rank's numbers in this internal call, in the order of ranks.
    std::vector<int64_t> exchange(const yoke_comm_signature &said, std::vector<int64_t> mine,
                                  std::optional<Deadline> until = {});
    std::vector<int64_t> exchange(int32_t called_as, std::vector<int64_t> mine);

    DeviceCalls &devices() noexcept { return devices_; }
    const DeviceCalls &devices() const noexcept { return devices_; }

private:
    RankOf place() const noexcept { return {members_.rank, members_.size()}; }
    void stage(IssuedCall &issued);

    const Members &members_;
    const GroupOptions &options_;
    const pid_t process_;
    Failure &failure_;
    CallRunner &runner_;
    CallQueue &calls_;
    DeviceCalls devices_;
};

}  // namespace yoke
