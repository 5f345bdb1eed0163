// Ranks of an NCCL communicator, each a thread with a fake device of its own, over the CUDA module and the fake NCCL.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "core/backend/comm.h"

namespace yoke::test {

// Returns the message of the calling thread's last failing call.
struct Failure {
    yoke_status status = YOKE_OK;
    std::string message;
};
Failure &failure();

// Has four cards, before the module is opened.
void set_devices();
// Opens the module at the first call, over the libraries in `folders` (":" between them).
const yoke_backend &open_module(const char *folders = DRIVER_FOLDER);
const yoke_backend_comm &engine();
// Returns the module's log lines so far.
std::string logged();
// Returns how often the module has given scratch memory back.
int scratch_given_back();
// Counts the resources that the fake NCCL still holds: communicators, windows, memory. Waits for a count of 0, at
// most this long.
int held_after_a_while(int milliseconds = 5000);
void expect_none_held();
// Has the fake NCCL count the calls anew that a fault names by number.
void count_calls_anew();

// An all_gather among threads.
class Board {
public:
    explicit Board(int size) : size_(size), parts_(static_cast<size_t>(size)) {}
    void gather(int rank, const void *mine, uint64_t bytes, void *all);
    void wait(int rank) { gather(rank, nullptr, 0, nullptr); }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int size_, came_ = 0, left_ = 0;
    std::vector<std::string> parts_;
};

struct Layout {
    int size = 2;
    double timeout_s = 20;
    std::vector<int> devices = {};  // by rank; empty: devices with the ranks' numbers
};

// State of a rank.
class Rank {
public:
    Rank(const Layout &layout, Board &board, int rank, const std::string &id);
    ~Rank();

    yoke_status init();
    yoke_status call(yoke_collective record);
    yoke_status run(int32_t op, yoke_dtype dtype, int64_t count, const void *in, void *out,
                    int32_t peer = -1, int32_t reduction = -1, uint32_t flags = 0);
    void destroy();
    void sync();
    // Memory of the rank's device, there for the rank's life; with bytes in it.
    void *room(size_t bytes);
    void *upload(const std::string &bytes);
    std::string download(const void *from, size_t bytes);
    void wait() { board_.wait(rank); }

    const int rank, size;
    void *device = nullptr, *stream = nullptr, *comm = nullptr;
    yoke_comm_fault fault{};
    double timeout_s;
    std::function<void(void *all, uint64_t bytes)> change_gathered;
    std::function<bool()> is_over;
    bool gathers = true;  // at init: gathers the ranks' infos

private:
    const Layout &layout_;
    Board &board_;
    const std::string &id_;
    std::vector<std::pair<void *, size_t>> rooms_;
};

using Body = std::function<void(Rank &)>;

// Runs the body in each rank's thread; `with_comm` makes the communicator before it.
void with_ranks(const Layout &layout, const Body &body, bool with_comm = true);

double seconds_of(const std::function<void()> &run);
// Expects a failure with this status and all texts in the message.
void expect_fails(yoke_status expected, yoke_status status, const std::vector<const char *> &texts);

// ---- elements -------------------------------------------------------------------------------------------------------

extern const std::vector<yoke_dtype> kDtypes;
std::string encode(yoke_dtype dtype, const std::vector<double> &values);
std::vector<double> decode(yoke_dtype dtype, const std::string &bytes);
size_t size_of(yoke_dtype dtype);

}  // namespace yoke::test
