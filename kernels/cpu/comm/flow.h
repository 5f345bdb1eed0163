// The bytes of one call on their way: what each peer is to get and what is to come from it, and the loop that moves it.
//
// Contract
//  * An algorithm fills in steps, in the order in which they shall pass each link, which is the order in which the peer
//    has its own steps for that link; run() returns when all are done, or with the first failure.
//  * A step may wait for progress elsewhere in the same flow (a gate): a forwarded chunk for its arrival, a result for
//    its being combined. Steps of one link follow each other, so the algorithm sees to it that gates make no circle.
//  * The header of a peer's message is compared before any byte behind it is used. What differs ends the flow with the
//    peer's signature; nothing of that peer's data has been written by then.
#pragma once

#include <deque>

#include "kernels/cpu/comm/clock.h"
#include "kernels/cpu/comm/comm.h"
#include "kernels/cpu/comm/waiter.h"

namespace yoke::cpu::comm {

struct OutStep {
    const char *data;
    uint64_t bytes;
    const uint64_t *gate;  // null: may go at once
    uint64_t at_least;     // what the gate must have reached
};

enum class Take { kHeader, kStore, kCombine };

struct InStep {
    char *data;  // where it goes; of a header, what is expected
    uint64_t bytes;
    Take take;
};

// Both ways to one peer.
struct Lane {
    Link *link = nullptr;
    std::vector<OutStep> out;
    std::vector<InStep> in;
    size_t out_at = 0, in_at = 0;        // the current step
    uint64_t out_done = 0, in_done = 0;  // of it, filling included
    uint64_t stored = 0;                 // bytes of data that have come: a gate
    Header header;                       // the last that came

    bool sends() const { return out_at < out.size(); }
    bool awaits() const { return in_at < in.size(); }
    bool is_open() const { return sends() || awaits(); }
};

// What this rank combines: its own elements with those of the peers' kCombine steps.
struct Chunk {
    const char *own;
    char *out;
    int64_t count;
};

class Flow {
public:
    explicit Flow(Comm &comm) : comm_(comm), lanes_(static_cast<size_t>(comm.size)), waiter_(comm)
    {
    }

    // A new call: its time begins, and what it says of itself is kept for all its messages.
    void begin(const yoke_collective &call);
    // A further stage of the same call.
    void next();

    void send_header(int peer) { send_header(peer, *headers_.begin()); }
    void expect_header(int peer) { expect_header(peer, *headers_.begin()); }
    void send_header(int peer, Header &header);
    void expect_header(int peer, Header &header);
    // Headers both ways with everyone, as every collective begins: who does not come, or calls something else, such as
    // one with another root, is known to each rank by itself, before the call returns.
    void greet_all();
    Header &add_header(const yoke_comm_signature &signature);
    Header &header() { return headers_.front(); }

    void send(int peer, const void *data, uint64_t bytes, const uint64_t *gate = nullptr,
              uint64_t at_least = 0);
    void receive(int peer, void *data, uint64_t bytes);
    void combine(int peer, uint64_t bytes);
    void add_chunk(const Chunk &chunk) { chunks_.push_back(chunk); }
    // The ranks whose elements are combined, in that order, and how.
    void combine_from(std::vector<int> team, const Combination &how);

    Lane &lane(int peer) { return lanes_[static_cast<size_t>(peer)]; }
    const uint64_t *combined() const { return &combined_; }
    yoke_status run();
    // A stage without messages that takes time asks whether it must end.
    yoke_status check();

    // ---- for Waiter ----
    // Moves what can be moved. Returns whether something was, or a peer's header differs: the wait is over then.
    bool look();
    // Calls f(lane) for each peer to which or from which something is still to go.
    template <class F>
    void each_open(const F &f)
    {
        for (int peer : used_)
            if (lane(peer).is_open()) f(lane(peer));
    }
    bool is_short() const { return is_short_; }
    const Deadline &deadline() const { return deadline_; }

private:
    bool move();
    bool push(Lane &lane);
    bool pull(int peer, Lane &lane);
    bool take_header(int peer, Lane &lane);
    bool combine_next();
    bool is_open() const;

    int late_rank();
    yoke_status fail_with(int32_t kind, int peer);
    yoke_status fail_mismatch(int peer);
    yoke_status blame_ended();

    Comm &comm_;
    std::vector<Lane> lanes_;
    std::vector<int> used_;  // peers that have steps
    std::deque<Header> headers_;
    std::vector<Chunk> chunks_;
    std::vector<int> team_;
    std::vector<const void *> inputs_;
    Combination how_ = {};
    uint64_t combined_ = 0;
    Deadline deadline_{-1};
    double timeout_s_ = -1;
    bool is_short_ = false;  // the call has few bytes
    yoke_comm_fault *fault_ = nullptr;
    int mismatched_ = -1;
    Waiter waiter_;
};

}  // namespace yoke::cpu::comm
