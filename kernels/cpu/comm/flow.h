// Bytes of a call on their way: the sends and receives of each peer, and the loop over them.
//
// Contract
//  * An algorithm adds the steps of each link in order. The peer adds its own steps for the link in the same order.
//    run() returns when all steps are done, or with the first failure.
//  * A step may have a gate: progress elsewhere in the same flow. A forwarded chunk waits for its arrival, a result
//    for its combination. Steps of a link follow each other, so the algorithm must not make a circle of gates.
//  * The flow compares the header of a peer's message before it uses any following byte. If the header differs, the
//    flow ends with the peer's signature. At this point no data of the peer has been written.
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
    uint64_t at_least;     // progress needed at the gate
};

enum class Take { kHeader, kStore, kCombine };

struct InStep {
    char *data;  // destination; for a header: the expected header
    uint64_t bytes;
    Take take;
};

// Both directions between this rank and a peer.
struct Lane {
    Link *link = nullptr;
    std::vector<OutStep> out;
    std::vector<InStep> in;
    size_t out_at = 0, in_at = 0;        // the current step
    uint64_t out_done = 0, in_done = 0;  // done bytes of the step, including filling
    uint64_t stored = 0;                 // received bytes of data: a gate
    Header header;                       // the last received header

    bool sends() const { return out_at < out.size(); }
    bool awaits() const { return in_at < in.size(); }
    bool is_open() const { return sends() || awaits(); }
};

// Elements of this rank, combined with the elements of the peers' kCombine steps.
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

    // Begins a new call. The time of the call starts, and all messages of the call use its signature.
    void begin(const yoke_collective &call);
    // Begins a further stage of the same call: removes the steps of the stage before.
    void next();

    void send_header(int peer) { send_header(peer, *headers_.begin()); }
    void expect_header(int peer) { expect_header(peer, *headers_.begin()); }
    void send_header(int peer, Header &header);
    void expect_header(int peer, Header &header);
    // Adds steps that exchange headers with all ranks, as every collective begins. So each rank finds by itself a
    // rank that is missing or makes another call, for example with another root, before the call returns.
    void greet_all();
    Header &add_header(const yoke_comm_signature &signature);
    Header &header() { return headers_.front(); }

    void send(int peer, const void *data, uint64_t bytes, const uint64_t *gate = nullptr,
              uint64_t at_least = 0);
    void receive(int peer, void *data, uint64_t bytes);
    void combine(int peer, uint64_t bytes);
    void add_chunk(const Chunk &chunk) { chunks_.push_back(chunk); }
    // Sets the combined ranks, in their order, and the combination.
    void combine_from(std::vector<int> team, const Combination &how);

    Lane &lane(int peer) { return lanes_[static_cast<size_t>(peer)]; }
    const uint64_t *combined() const { return &combined_; }
    yoke_status run();
    // Returns a failure if the call was aborted or its time is over, else YOKE_OK. A long stage without messages
    // calls this function.
    yoke_status check();

    // ---- for Waiter ----
    // Moves all ready bytes. Returns true if bytes moved or a peer's header differs: then the wait is over.
    bool look();
    // Calls f(lane) for each peer with steps left in either direction.
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
    std::vector<int> used_;  // peers with steps
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
