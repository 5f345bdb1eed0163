// memory.cpp: seconds of a pair of requests: yoke_alloc and yoke_free, the model of PyTorch's allocator, glibc.
//
// Cases: "WHO WHAT COUNT", WHO is yoke, torch or glibc; WHAT is
//   same     4 KiB, given back at once
//   small    2,048 live blocks; a random block goes, a block of 1 byte to 1 MiB comes, sizes even by magnitude
//   large    as `small`, with 1 to 64 MiB
//   streams  two threads, each as `small` on a separate stream: the time of a pair of one thread
//   shared   two threads as `small` on one stream
// p99-small and p99-large give the time that 99 of 100 pairs stay below.
// Yoke and the model serve a hollow device, so no driver takes time.
#include "core/memory/memory.h"
#include "benchmarks/workers/torch_policy.h"
#include "core/memory/device_memory.h"
#include "core/memory/hollow.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

// Source of memory for a stream.
class Allocator {
public:
    virtual ~Allocator() = default;
    // The calling thread is about to use that stream.
    virtual void enter(int) {}
    virtual void *alloc(uint64_t bytes, int stream) = 0;
    virtual void free(void *block) = 0;
};

class Yoke final : public Allocator {
public:
    Yoke() : hollow_({.capacity = uint64_t{1} << 42}), device_(new yoke::Device)
    {
        device_->backend = &hollow_.table();
        device_->handle = hollow_.handle();
        device_->name = "hollow:0";
        device_->info.alignment = 512;
        yoke::set_caching(true);
        streams_.push_back(yoke::current_stream(*device_));
        streams_.push_back(yoke::make_stream(*device_, 0));
    }
    void enter(int stream) override
    {
        yoke::set_current_stream(*streams_[static_cast<size_t>(stream)]);
    }
    void *alloc(uint64_t bytes, int stream) override
    {
        return yoke::raw_alloc(*device_, bytes, streams_[static_cast<size_t>(stream)]->lane.native);
    }
    void free(void *block) override { yoke::raw_free(block); }

private:
    yoke::Hollow hollow_;
    yoke::Device *device_;  // its memory lives as long as the process
    std::vector<yoke::Ref<yoke::Stream>> streams_;
};

class Torch final : public Allocator {
public:
    void *alloc(uint64_t bytes, int stream) override
    {
        return reinterpret_cast<void *>(policy_.alloc(bytes, stream));
    }
    void free(void *block) override { policy_.free(reinterpret_cast<uint64_t>(block)); }

private:
    class Endless final : public TorchPolicy::Source {
    public:
        uint64_t alloc(uint64_t bytes) override { return std::exchange(next_, next_ + bytes); }
        void free(uint64_t, uint64_t) override {}
        uint64_t reserve() override { return 0; }

    private:
        uint64_t next_ = uint64_t{1} << 30;
    };
    Endless source_;
    TorchPolicy policy_{source_, false};
};

class Glibc final : public Allocator {
public:
    void *alloc(uint64_t bytes, int) override { return malloc(bytes); }
    void free(void *block) override { ::free(block); }
};

// Sizes from `least` to `most`, spread evenly by magnitude.
std::vector<uint64_t> draw_sizes(std::mt19937 &random, double least, double most)
{
    std::vector<uint64_t> sizes(1 << 14);
    std::uniform_real_distribution<double> magnitude(std::log2(least), std::log2(most));
    for (uint64_t &size : sizes) size = static_cast<uint64_t>(std::exp2(magnitude(random)));
    return sizes;
}

class Churn {
public:
    Churn(Allocator &allocator, int stream, unsigned seed, double least, double most)
        : allocator_(allocator), stream_(stream), random_(seed)
    {
        sizes_ = draw_sizes(random_, least, most);
        places_.resize(sizes_.size());
        for (uint32_t &place : places_) place = random_() % kLive;
        for (int i = 0; i < kLive; ++i) live_.push_back(next_block());
        for (int i = 0; i < 4 * kLive; ++i) step();
    }
    ~Churn()
    {
        for (void *block : live_) allocator_.free(block);
    }
    Churn(const Churn &) = delete;
    Churn &operator=(const Churn &) = delete;

    void step()
    {
        void *&block = live_[places_[at_]];
        allocator_.free(block);
        block = next_block();
    }

private:
    static constexpr int kLive = 2048;
    void *next_block()
    {
        at_ = (at_ + 1) % sizes_.size();
        return allocator_.alloc(sizes_[at_], stream_);
    }

    Allocator &allocator_;
    const int stream_;
    std::mt19937 random_;
    std::vector<uint64_t> sizes_;
    std::vector<uint32_t> places_;
    std::vector<void *> live_;
    size_t at_ = 0;
};

double since(Clock::time_point start)
{
    return std::chrono::duration<double>(Clock::now() - start).count();
}

double time_steps(Churn &churn, long count)
{
    const auto start = Clock::now();
    for (long i = 0; i < count; ++i) churn.step();
    return since(start) / static_cast<double>(count);
}

// The time below which 99 of 100 steps stay.
double time_slow(Churn &churn, long count)
{
    std::vector<double> times(static_cast<size_t>(std::max(1000L, count)));
    for (double &time : times) {
        const auto start = Clock::now();
        churn.step();
        time = since(start);
    }
    const auto place = times.begin() + static_cast<int64_t>(times.size() * 99 / 100);
    std::nth_element(times.begin(), place, times.end());
    return *place;
}

constexpr double kMiB = 1 << 20;

double time_threads(Allocator &allocator, bool are_apart, long count)
{
    std::vector<std::unique_ptr<Churn>> churns;
    for (int i = 0; i < 2; ++i)
        churns.push_back(std::make_unique<Churn>(allocator, are_apart ? i : 0,
                                                 static_cast<unsigned>(i), 1, kMiB));
    std::barrier begin(2);  // the start of a thread does not count as a request
    std::thread other([&] {
        allocator.enter(are_apart ? 1 : 0);
        begin.arrive_and_wait();
        time_steps(*churns[1], count);
    });
    begin.arrive_and_wait();
    const auto start = Clock::now();
    time_steps(*churns[0], count);
    other.join();
    return since(start) / static_cast<double>(count);
}

double measure(Allocator &allocator, const std::string &what, long count)
{
    if (what == "same") {
        const auto start = Clock::now();
        for (long i = 0; i < count; ++i) allocator.free(allocator.alloc(4096, 0));
        return since(start) / static_cast<double>(count);
    }
    if (what == "streams" || what == "shared")
        return time_threads(allocator, what == "streams", count);
    const bool is_small = what.ends_with("small");
    Churn churn(allocator, 0, 7, is_small ? 1 : kMiB, is_small ? kMiB : 64 * kMiB);
    return what.starts_with("p99") ? time_slow(churn, count) : time_steps(churn, count);
}

}  // namespace

int main()
{
    printf("Yoke and a model of PyTorch's allocator over a hollow device, malloc of glibc\n");
    fflush(stdout);
    Yoke yoke;
    Torch torch;
    Glibc glibc;
    char who[32], what[32];
    long count = 0;
    while (scanf("%31s %31s %ld", who, what, &count) == 3) {
        Allocator *allocator = !strcmp(who, "yoke")    ? static_cast<Allocator *>(&yoke)
                               : !strcmp(who, "torch") ? static_cast<Allocator *>(&torch)
                                                       : static_cast<Allocator *>(&glibc);
        printf("%.12g\n", measure(*allocator, what, count));
        fflush(stdout);
    }
    return 0;
}
