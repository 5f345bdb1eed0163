// Memory that the ranks of a communicator share, be they threads or processes: a file that the process holds which made
// the unique id. The others open it by that process's number, so that it has no name and no crash leaves one behind.
//
// A rank posts its calls in channels, each in the order of its own: one of collectives, one a peer of sends and of
// receives, one of windows. What it brings stands in the file, behind all that it posted before, and is given back once
// all that read it have.
#pragma once

#pragma GCC visibility push(default)
#include <nccl.h>
#pragma GCC visibility pop

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

namespace yoke::fake {

constexpr int kMostRanks = 64;
constexpr int kSendTo = 0, kReceiveFrom = kMostRanks, kCollectives = 2 * kMostRanks,
              kWindows = kCollectives + 1, kChannels = kWindows + 1;

// Call as its peers see it.
struct Posted {
    int32_t kind, dtype, reduction, root;
    uint64_t count, offset, bytes;  // elements; what it brings in the file
    uint64_t reserved;
};

struct Rank {
    std::atomic<int> has_joined;
    unsigned char uuid[16];  // of its device
    std::atomic<uint64_t> posted[kChannels], taken[kChannels];
};
// Head of the file, which begins as zeros.
struct Board {
    std::atomic<uint64_t> cookie;
    std::atomic<int> size;
    Rank ranks[kMostRanks];
};

// Bytes of the file, mapped for reading.
class View {
public:
    View(int file, uint64_t offset, uint64_t bytes);
    ~View();
    View(View &&other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_)
    {
    }
    const char *data() const { return static_cast<const char *>(data_); }

private:
    void *data_ = nullptr;
    uint64_t bytes_;
};

// Hold that one rank has of the file.
class Shared {
public:
    // Makes the file and its id; false where the system gives none.
    static bool make(ncclUniqueId &id);
    // Opens the file of an id; null where the process that made the id has gone.
    static std::unique_ptr<Shared> open(const ncclUniqueId &id, int rank);
    ~Shared();
    Shared(const Shared &) = delete;

    Board &board() const { return *board_; }
    // Lets this process give the file up that it made for the id: all ranks have it.
    void release_id() const;
    void post(int channel, Posted call, const void *bytes);
    bool has(int rank, int channel, uint64_t sequence) const;
    Posted read(int rank, int channel, uint64_t sequence) const;
    View view(const Posted &call) const { return {file_, call.offset, call.bytes}; }
    // Tells the peers that one more call of a channel was read, of all ranks that it concerns.
    void take(int channel);
    // Gives memory back of calls that all have read.
    void reclaim();

private:
    struct Own {
        int channel;
        uint64_t sequence, offset, bytes;
    };
    Shared(int file, Board *board, int rank, uint64_t cookie);
    bool is_taken(const Own &call) const;

    const int file_, rank_;
    Board *const board_;
    const uint64_t cookie_;
    std::mutex mutex_;  // kernels and the host's calls post
    uint64_t end_;
    std::deque<Own> own_;
};

}  // namespace yoke::fake
