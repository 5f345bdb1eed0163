// ranks.h: several ranks of a group over an engine's table: each a thread of a process (threads.cpp), or each a
// process (mpi/processes.cpp).
//
// The tables are used as the core uses them. Ids and addresses are exchanged by an all_gather of the suite's own.
// Calls carry a signature that this suite counts. A failed expectation in a rank's body has the rank's number.
#pragma once

#include "contract.h"
#include "core/backend/comm.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>

namespace yoke::test {

// An all_gather among ranks, for init.
class Rendezvous {
public:
    virtual ~Rendezvous() = default;
    virtual yoke_status gather(int rank, const void *mine, uint64_t bytes, void *all) = 0;
    void meet(int rank) { gather(rank, nullptr, 0, nullptr); }
};

// Rendezvous of ranks in threads of this process.
class ThreadRendezvous final : public Rendezvous {
public:
    explicit ThreadRendezvous(int size) : size_(size), board_(static_cast<size_t>(size)) {}
    yoke_status gather(int rank, const void *mine, uint64_t bytes, void *all) override;

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int size_, came_ = 0, left_ = 0;
    std::vector<std::string> board_;
};

// How a group is laid out.
struct Ranks {
    int size = 2;
    bool shares_memory = true;
    std::vector<const char *> nodes = {};  // by rank; empty: all on this node
    double timeout_s = 20;
    const char *address = "127.0.0.1";
};

// State of a rank in a group.
class Rank {
public:
    Rank(const yoke_backend_comm &engine, void *device, int rank, const Ranks &ranks,
         Rendezvous &rendezvous, const void *id);
    ~Rank();

    yoke_status init();
    // Makes `child`, with the same rank numbers, a subgroup of this rank's group.
    yoke_status split(const void *id, Rank &child);
    yoke_status call(yoke_collective &record);
    yoke_status run(int32_t op, yoke_dtype dtype, int64_t count, const void *in, void *out,
                    int32_t peer = -1, int32_t reduction = -1);
    yoke_status barrier() { return run(YOKE_COMM_BARRIER, 0, 0, nullptr, nullptr); }
    void destroy();
    void meet() { rendezvous_.meet(rank); }

    const int rank, size;
    const yoke_backend_comm &engine;
    void *comm = nullptr;
    yoke_comm_fault fault = {};
    double timeout_s;
    // Replaces the next call's signature.
    std::function<void(yoke_comm_signature &)> lie;
    // Runs when an all_gather of init has ended.
    std::function<void()> after_gather;
    // Changes what an all_gather of init has gathered.
    std::function<void(void *all)> change_gathered;
    // Answer to init's question whether to stop.
    std::function<bool()> is_over;
    // Answer to a call's question: the number of a gone rank among these ranks, or with `died` of a dead rank; or -1.
    std::function<int32_t(std::span<const int32_t> ranks, bool died)> find_gone;

private:
    yoke_status init(const void *id,
                     const std::function<yoke_status(const yoke_comm_member &)> &make);
    yoke_comm_signature sign(const yoke_collective &record);

    void *device_;
    const Ranks &ranks_;
    Rendezvous &rendezvous_;
    const void *id_;
    uint64_t calls_ = 0;
    std::map<int32_t, uint64_t> sent_, received_;
};

using Body = std::function<void(Rank &)>;

// True if the engine notices the end of a rank's process.
extern const bool kEngineKnowsDeaths;

// Runs the body in each rank, with or without a communicator that is ready.
void with_ranks(const yoke_backend_comm &engine, void *device, const Ranks &ranks,
                const Body &body);
void with_uninitialised_ranks(const yoke_backend_comm &engine, void *device, const Ranks &ranks,
                              const Body &body);

// A backend whose engine is done when a call returns, so that ranks can be threads over host memory.
class Collectives : public Contract {
protected:
    void SetUp() override;
    void run(const Ranks &ranks, const Body &body)
    {
        with_ranks(*table_->comm, device_, ranks, body);
    }
};

// ---- elements -------------------------------------------------------------------------------------------------------

extern const yoke_dtype kDtypes[11];
uint64_t bytes_of(yoke_dtype dtype);
// Elements of a dtype from numbers, and back.
std::string encode(yoke_dtype dtype, const std::vector<double> &values);
std::vector<double> decode(yoke_dtype dtype, const std::string &bytes);

}  // namespace yoke::test
