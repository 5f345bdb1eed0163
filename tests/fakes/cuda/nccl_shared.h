// Memory shared by the ranks of a communicator, as threads or as processes. The memory is a file, held by the process
// of the rank that made the unique id. Other ranks open the file by this process's number. So the file has no name,
// and no crash leaves a file behind.
//
// A rank posts calls in channels, each with its own order. There are channels for collectives, for windows, and for
// each peer's sends and receives. The data of a call stands in the file, after all earlier data of the rank. When all
// readers have read the data, the memory is given back.
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

// Call in the form for peers.
struct Posted {
    int32_t kind, dtype, reduction, root;
    uint64_t count, offset, bytes;  // elements; place of the call's data in the file
    uint64_t reserved;
};

struct Rank {
    std::atomic<int> has_joined;
    unsigned char uuid[16];  // UUID of the rank's device
    std::atomic<uint64_t> posted[kChannels], taken[kChannels];
};
// Head of the file; all zeros at first.
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

// A rank's hold on the file.
class Shared {
public:
    // Makes the file and an id; returns false if the system gives no file.
    static bool make(ncclUniqueId &id);
    // Opens the file of an id; null if the id's process has gone.
    static std::unique_ptr<Shared> open(const ncclUniqueId &id, int rank);
    ~Shared();
    Shared(const Shared &) = delete;

    Board &board() const { return *board_; }
    // Lets this process close the id's file, because all ranks have opened the file.
    void release_id() const;
    void post(int channel, Posted call, const void *bytes);
    bool has(int rank, int channel, uint64_t sequence) const;
    Posted read(int rank, int channel, uint64_t sequence) const;
    View view(const Posted &call) const { return {file_, call.offset, call.bytes}; }
    // Reports to the peers: one more call of a channel was read, from all ranks of the call.
    void take(int channel);
    // Gives back memory of calls already read by all ranks.
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
