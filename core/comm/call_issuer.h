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

    // Returns whether this process made the group; false in a forked child.
    bool is_here() const noexcept;
    void check_process() const;  // raises YOKE_E_FORKED in a forked child
    // Raises YOKE_E_FORKED in a forked child, and the group's cause if the group has failed.
    void check_running(const char *call);

    // Raises YOKE_E_STATE for a call outside a coalesce if the ranks of the group are devices of this process. The
    // calling thread may have the other ranks too, and would wait for their calls for ever.
    void check_coalesced(const char *call, bool is_coalesced) const;

    // Returns a call ready for `issue`; an asynchronous call gets a work. A call on tensors of a device becomes a
    // `LateCall` or is staged. The first call on a device makes the group's communicator there.
    IssuedCall prepare(Collective call, bool is_async);
    // Issues a call. A blocking call in host memory is done after the return. A blocking call on a device is then
    // ahead of later work on the current stream. Raises the group's cause.
    void issue(IssuedCall issued);

    // Calls of a group, issued together with calls of other groups.
    struct Together {
        CallIssuer *of;
        std::vector<IssuedCall> calls;
        std::exception_ptr failure = {};  // reason, if not issued
        bool were_issued = false;         // their works report their failures
    };
    // Issues calls of several groups; no send or receive among these calls waits for another. Blocking calls are done
    // after the return, or have a work in the result for the caller to wait for. Raises no failure of a group:
    // `Together::failure` has the reason.
    static std::vector<Ref<Work>> issue_together(const std::vector<Together *> &groups);

    // Exchanges numbers with the other ranks by an internal call with this signature. Returns the numbers of all
    // ranks, in the order of ranks. `until`: latest end of the call.
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
