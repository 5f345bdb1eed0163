// check_in.h: the ranks of a job publish their RankInfo in the job's store, and learn whether all ranks are there.
//
// Each rank adds its RankInfo to a list. Rank 0 reads the list until every rank has joined or an entry is wrong. Then
// rank 0 publishes an outcome for all ranks: every RankInfo, or the failure. If rank 0 is missing, the first rank
// whose deadline passes publishes the outcome. Before the outcome, any process may refuse and say why the job cannot
// start, such as an ended connection or a rank that cannot go on. The first outcome counts.
#pragma once

#include "core/store/store.h"

#include <string>
#include <vector>

namespace yoke {

// Facts about a joined rank.
struct RankInfo {
    int32_t rank = 0, size = 1;
    std::string host;
    int64_t process = 0;
    std::string node, memory;  // as in HostNode
    std::string address;       // this machine's address for peers: "10.0.0.7"
    std::string build;         // build of Yoke: alike on all ranks
    std::string device;        // kind, model and driver of this rank's device
    // Numbers among the ranks of the same node: the launcher's numbers if every rank has them, else by rank. -1 until
    // all ranks are there.
    int32_t local_rank = -1, local_size = -1;
    std::string silence = {};  // seconds without news until another rank counts as stopped

    std::string encode() const;
    // Returns the RankInfo in a text made by encode(), or nullopt if the text is no RankInfo.
    static std::optional<RankInfo> decode(std::string_view text);
};
// Returns a rank's process for messages: "host a, process 4711". describe() gives the rank too: "rank 1 (host a,
// process 4711)".
std::string describe_process(const RankInfo &info);
std::string describe(const RankInfo &info);
// Returns a warning, with two ranks whose devices differ and their devices. Returns "" if all devices are alike.
std::string unlike_devices(const std::vector<RankInfo> &all);
// Returns a warning, with two ranks whose values of YOKE_COMM_SILENCE differ and these values. Returns "" if all
// values are alike.
std::string unlike_silence(const std::vector<RankInfo> &all);

class CheckIn {
public:
    // Prepares the check-in of this rank in a borrowed store. On rank 0, `own_address` returns the address once all
    // ranks are there: by then the ranks have reached rank 0 at this address.
    CheckIn(Store &store, RankInfo self, std::function<std::string()> own_address = nullptr)
        : store_(store), self_(std::move(self)), own_address_(std::move(own_address))
    {
    }
    // Publishes this rank's RankInfo and waits for the outcome. Returns the RankInfo of all ranks, in the order of
    // ranks. Raises the outcome, YOKE_E_TIMEOUT or YOKE_E_COMM, alike on all ranks. Also raises YOKE_E_COMM if the
    // complete job does not have this process.
    std::vector<RankInfo> meet(Deadline deadline);
    // Returns whether an outcome exists already. A rank that begins after the outcome is too late.
    static bool is_over(Store &store, Deadline deadline);
    // Waits until all other ranks have checked in, or until the deadline. The calling rank has not checked in itself.
    static void await_others(Store &store, int32_t size, Deadline deadline);
    // Publishes the outcome that the job cannot start: all ranks raise YOKE_E_COMM with this reason. If there is a
    // outcome already, the earlier outcome counts.
    static void refuse(Store &store, const std::string &why, Deadline deadline);

    struct Verdict {
        yoke_status status = YOKE_OK;
        std::string text;  // with YOKE_OK: every RankInfo
    };

private:
    Verdict judge(Deadline deadline);
    Verdict hear(Deadline deadline);
    Verdict stand_by(const Verdict &own, Deadline deadline);  // returns the valid outcome
    std::string fault_of(const RankInfo &newcomer) const;
    Verdict who_is_missing(double given_s) const;
    void read_ranks(Deadline deadline);
    bool is_complete() const;

    Store &store_;
    const RankInfo self_;
    const std::function<std::string()> own_address_;
    int64_t read_ = 0;  // entries read from the list
    std::vector<RankInfo> come_;
};

}  // namespace yoke
