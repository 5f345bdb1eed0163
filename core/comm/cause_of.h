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

// Returns the cause of a fault reported by an engine, with the faulty rank and this rank's call. After a mismatch,
// the text also has the faulty rank's call. If the faulty rank is unknown, the text names this rank and the engine's
// reason.
Cause cause_of(const yoke_comm_fault &fault, yoke_status status, const std::string &engine_text,
               const CurrentCall &current, const RankInfo &self,
               const std::vector<RankInfo> &ranks);
// Returns a call for people, with its line if known: "recv of 4 float32 from rank 1 at train.py:17". Returns "the
// making of the group" if there is no call.
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
// Returns the cause for a passed deadline, YOKE_E_TIMEOUT. The text names the suspects, or says that all ranks came.
Cause cause_of(const CurrentCall &current, const Suspects &suspects,
               const std::vector<RankInfo> &ranks);
// Returns the cause for a rank that released the group while others were in a call, or came to a call. `how` is its
// ending(), or "".
Cause cause_of(const CurrentCall &current, const RankInfo &left, const std::string &how);
// Returns the cause for an ended connection to rank `other`, after the end of `server`, the rank that keeps the
// store. Without the store, this rank cannot know whether `other` died or gave up the group.
Cause cause_of(const CurrentCall &current, const RankInfo &server, bool has_left,
               const RankInfo &other);
// Returns the cause for a rank that ended, missed its heartbeats, or left the group outside a call. `what` is for
// example "died: the connection ended".
Cause cause_of(const RankInfo &lost, const std::string &what);
// Returns a text for people: this rank did not get `bytes` of memory that peers reach, with the engine's reason.
std::string no_memory_text(const char *call, const RankInfo &self, uint64_t bytes,
                           const std::string &engine_text);
// Returns the cause for this rank's own problem in a call: an interrupt, an error, or missing memory. The text of a
// YOKE_E_TIMEOUT or YOKE_E_COMM error stays, because it names its ranks. For other errors, the text names this rank.
Cause cause_of(const std::exception_ptr &caught, const RankInfo &self, const char *call);

}  // namespace yoke
