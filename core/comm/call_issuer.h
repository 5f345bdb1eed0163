// call_issuer.h: how a checked call comes to the queue of its group, and to the stream of a device.
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

// The issuer has no lock: the order of calls is made by the queue, or by the lane of a device.
class CallIssuer {
public:
    CallIssuer(const Members &members, const GroupOptions &options, const GroupKeys &keys,
               const Departures &departures, Failure &failure, CallRunner &runner,
               CallQueue &calls);

    // False in a forked child of the process that made the group.
    bool is_here() const noexcept;
    void check_process() const;  // raises YOKE_E_FORKED in a forked child
    // Does the same, and raises the group's cause.
    void check_running(const char *call);

    // Raises YOKE_E_STATE for a call outside a coalesce if one thread may have the other ranks.
    void check_coalesced(const char *call, bool is_coalesced) const;

    // Makes a call ready: the call gets a work if it is asynchronous, and a way for tensors of a device. The first call
    // on a device makes the group's communicator there.
    IssuedCall prepare(Collective call, bool is_async);
    // Issues one call. A blocking call is done when this returns; of a device's, the current stream comes behind it.
    void issue(IssuedCall issued);

    // Calls of one group that are issued together with those of others.
    struct Together {
        CallIssuer *of;
        std::vector<IssuedCall> calls;
        std::exception_ptr failure = {};  // why they were not issued
        bool were_issued = false;         // their works are told what they fail with
    };
    // Issues calls of several groups, of which no send or receive keeps another one from going on. Blocking calls are
    // done when it returns, or have a work among the results, to be waited for.
    static std::vector<Ref<Work>> issue_together(const std::vector<Together *> &groups);

    // Returns what each rank gave to this call of the core's own, in their order.
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
