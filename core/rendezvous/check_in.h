// check_in.h: the ranks of a job say in its store who they are, and hear whether all are there.
//
// Each adds its RankInfo to a list. Rank 0 reads it until every rank has come, or until something in it is wrong, and
// gives its verdict, which stands for all: the RankInfo of every rank, or what failed. Where rank 0 does not, because
// it is the one that is missing, the first rank whose deadline passes gives the verdict. Anybody may refuse at any time
// before, and say why the job cannot start: a connection that ended, a rank that cannot go on. The first verdict
// stands.
#pragma once

#include "core/store/store.h"

#include <string>
#include <vector>

namespace yoke {

// A rank that has come.
struct RankInfo {
    int32_t rank = 0, size = 1;
    std::string host;
    int64_t process = 0;
    std::string node, memory;  // as HostNode has them
    std::string address;       // of this host, as its peers reach it: "10.0.0.7"
    std::string build;         // of Yoke: alike on all ranks
    std::string device;        // of this rank: kind, model and driver
    // Among those of its node: the launcher's where every rank has them, else by rank. -1 until all are there.
    int32_t local_rank = -1, local_size = -1;
    std::string silence = {};  // seconds after which it takes another for stopped

    std::string encode() const;
    // Nothing where it is none.
    static std::optional<RankInfo> decode(std::string_view text);
};
// "host a, process 4711", and "rank 1 (host a, process 4711)".
std::string describe_process(const RankInfo &info);
std::string describe(const RankInfo &info);
// What is unlike among the devices of all ranks, for people; "" where they are alike.
std::string unlike_devices(const std::vector<RankInfo> &all);
// So of YOKE_COMM_SILENCE.
std::string unlike_silence(const std::vector<RankInfo> &all);

class CheckIn {
public:
    // Rank 0 is asked for its address when all are there and have reached it at one.
    CheckIn(Store &store, RankInfo self, std::function<std::string()> own_address = nullptr)
        : store_(store), self_(std::move(self)), own_address_(std::move(own_address))
    {
    }
    // Returns the RankInfo of all, by rank. Raises the verdict, YOKE_E_TIMEOUT or YOKE_E_COMM, alike on all ranks.
    std::vector<RankInfo> meet(Deadline deadline);
    // Whether there is a verdict already, so that who begins is too late for it.
    static bool is_over(Store &store, Deadline deadline);
    // By one that has not checked in: until all others have, or the deadline.
    static void await_others(Store &store, int32_t size, Deadline deadline);
    // The job cannot start: all ranks raise why.
    static void refuse(Store &store, const std::string &why, Deadline deadline);

    struct Verdict {
        yoke_status status = YOKE_OK;
        std::string text;  // of YOKE_OK: every RankInfo
    };

private:
    Verdict judge(Deadline deadline);
    Verdict hear(Deadline deadline);
    Verdict stand_by(const Verdict &own, Deadline deadline);  // the one that stands
    std::string fault_of(const RankInfo &newcomer) const;
    Verdict who_is_missing(double given_s) const;
    void read_ranks(Deadline deadline);
    bool is_complete() const;

    Store &store_;
    const RankInfo self_;
    const std::function<std::string()> own_address_;
    int64_t read_ = 0;  // of the list
    std::vector<RankInfo> come_;
};

}  // namespace yoke
