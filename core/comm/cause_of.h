// cause_of.h: causes of what a group fails with: which call, which rank is to blame, what it told.
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

// A rank's call, and the line of the script that made the call where the line is known.
struct CurrentCall {
    yoke_comm_signature signature{};
    std::string line;   // "train.py:17 (step)"; "" where nobody tells
    int32_t from = -1;  // of a recv, whose signature is that of the send
    const char *making =
        nullptr;              // "init", "split": what makes the group, in place of a call of it
    std::string before = {};  // of a coalesce: a later call of it, which the other rank made first
    std::string held_up_by =
        {};  // on a device: a call of another group, behind which it is on the stream
};

// Returns the cause of a fault that an engine told: names the culprit and both calls.
Cause cause_of(const yoke_comm_fault &fault, yoke_status status, const std::string &engine_text,
               const CurrentCall &current, const RankInfo &self,
               const std::vector<RankInfo> &ranks);
// "recv of 4 float32 from rank 1 at train.py:17".
std::string told_as(const CurrentCall &current);

// Message of a rank to the others when its deadline passes.
struct Missing {
    int32_t rank = -1;            // whom it misses; -1 where it cannot tell
    std::string call;             // in which
    std::string held_up_by = {};  // as CurrentCall has it

    std::string encode() const;
    static Missing decode(std::string_view text);
};
// Ranks of which one is to blame for a deadline; none where all came to the call. Ranks that wait for each other, each
// for the next one, have the call in which each waits.
struct Suspects {
    std::vector<int32_t> ranks;
    std::vector<std::string> calls;
    std::string refused;  // what was wrong with the call of the one
    // By rank: the calls of other groups that hold this one up on devices; only if all came.
    std::map<int32_t, std::string> held_up = {};
};
// Returns the cause for a deadline that has passed.
Cause cause_of(const CurrentCall &current, const Suspects &suspects,
               const std::vector<RankInfo> &ranks);
// Returns the cause for a rank that let the group go while others were in a call, or came to one. `how` is its
// ending(), or "".
Cause cause_of(const CurrentCall &current, const RankInfo &left, const std::string &how);
// Returns the cause for a rank that has died or has given the group up. Nobody can tell which of the two, since the
// rank that keeps the table is gone.
Cause cause_of(const CurrentCall &current, const RankInfo &server, bool has_left,
               const RankInfo &other);
// Returns the cause for a rank that ended, fell silent, or left the group without a call: `what` is "died: its
// connection ended".
Cause cause_of(const RankInfo &lost, const std::string &what);
// Returns why a rank did not get memory that peers reach.
std::string no_memory_text(const char *call, const RankInfo &self, uint64_t bytes,
                           const std::string &engine_text);
// Returns the cause for what this rank met by itself in a call: an interrupt, an error, a want of memory. What the
// table itself tells names its ranks; of all else the others are told that it happened here.
Cause cause_of(const std::exception_ptr &caught, const RankInfo &self, const char *call);

}  // namespace yoke
