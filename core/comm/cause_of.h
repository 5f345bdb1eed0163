// cause_of.h: causes of a group's failure: the call, the rank to blame, and the rank's report.
#pragma once

#include "core/backend/comm.h"
#include "core/base/text.h"
#include "core/rendezvous/cause.h"
#include "core/rendezvous/rendezvous.h"

#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// Call of a rank, with its line in the script if known.
struct CurrentCall {
    yoke_comm_signature signature{};
    std::string line;              // "train.py:17 (step)"; "" if unknown
    int32_t from = -1;             // sender of a recv, whose signature is the send's
    const char *making = nullptr;  // "init", "split": maker of the group, in place of a call
    std::string before = {};       // in a coalesce: later call, which the other rank made first
    std::string held_up_by = {};   // on a device: another group's call, ahead on the stream
};

// Returns the cause of a fault reported by an engine, with the culprit and both calls.
Cause cause_of(const yoke_comm_fault &fault, yoke_status status, const std::string &engine_text,
               const CurrentCall &current, const RankInfo &self,
               const std::vector<RankInfo> &ranks);
// Returns "recv of 4 float32 from rank 1 at train.py:17".
std::string told_as(const CurrentCall &current);

// Message of a rank to the other ranks at its deadline.
struct Missing {
    int32_t rank = -1;            // missed rank; -1 if unknown
    std::string call;             // call of the wait
    std::string held_up_by = {};  // as in CurrentCall

    std::string encode() const;
    static Missing decode(std::string_view text);
};
// Ranks among which the culprit for a deadline is; empty if all came to the call. If the ranks wait for each other in
// a circle, `calls` has each rank's call.
struct Suspects {
    std::vector<int32_t> ranks;
    std::vector<std::string> calls;
    std::string refused;  // reason of the only rank's refused call
    // Calls of other groups ahead of this call on devices, by rank; only if all ranks came.
    std::map<int32_t, std::string> held_up = {};
};
// Returns the cause for a passed deadline.
Cause cause_of(const CurrentCall &current, const Suspects &suspects,
               const std::vector<RankInfo> &ranks);
// Returns the cause for a rank that released the group while others were in a call, or came to a call. `how` is its
// ending(), or "".
Cause cause_of(const CurrentCall &current, const RankInfo &left, const std::string &how);
// Returns the cause for a rank that died or gave up the group. The rank that keeps the store is gone, so the real
// case is unknown.
Cause cause_of(const CurrentCall &current, const RankInfo &server, bool has_left,
               const RankInfo &other);
// Returns the cause for a rank that ended, missed its heartbeats, or left the group outside a call. `what` is "died:
// its connection ended".
Cause cause_of(const RankInfo &lost, const std::string &what);
// Returns why a rank did not get memory for peers.
std::string no_memory_text(const char *call, const RankInfo &self, uint64_t bytes,
                           const std::string &engine_text);
// Returns the cause for this rank's own problem in a call: an interrupt, an error, or missing memory. An error of the
// store names its ranks. For other errors, the cause names this rank.
Cause cause_of(const std::exception_ptr &caught, const RankInfo &self, const char *call);

}  // namespace yoke
