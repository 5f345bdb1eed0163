// Ranks of a communicator for tests of the fake NCCL: each is a thread, or a process, with a device of its own.
#pragma once

#include <nccl.h>
#include <sys/mman.h>
#include <algorithm>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "tests/fakes/cuda/alone.h"

namespace yoke::test {

#define NCCL_CALL(call) \
    decltype(&::call) call = reinterpret_cast<decltype(&::call)>(dlsym(library, #call))

// Functions of the library; null if the library does not have the function.
struct Nccl {
    void *library;
    explicit Nccl(const char *path = FOLDER "/driver/libnccl.so.2")
        : library(dlopen(path, RTLD_NOW))
    {
        EXPECT_NE(library, nullptr) << dlerror();
    }
    NCCL_CALL(ncclGetVersion);
    NCCL_CALL(ncclGetUniqueId);
    NCCL_CALL(ncclCommInitRankConfig);
    NCCL_CALL(ncclCommFinalize);
    NCCL_CALL(ncclCommDestroy);
    NCCL_CALL(ncclCommAbort);
    NCCL_CALL(ncclCommGetAsyncError);
    NCCL_CALL(ncclGetErrorString);
    NCCL_CALL(ncclGetLastError);
    NCCL_CALL(ncclGroupStart);
    NCCL_CALL(ncclGroupEnd);
    NCCL_CALL(ncclAllReduce);
    NCCL_CALL(ncclReduce);
    NCCL_CALL(ncclBroadcast);
    NCCL_CALL(ncclAllGather);
    NCCL_CALL(ncclReduceScatter);
    NCCL_CALL(ncclSend);
    NCCL_CALL(ncclRecv);
    NCCL_CALL(ncclAlltoAll);
    NCCL_CALL(ncclGather);
    NCCL_CALL(ncclScatter);
    NCCL_CALL(ncclMemAlloc);
    NCCL_CALL(ncclMemFree);
    NCCL_CALL(ncclCommRegister);
    NCCL_CALL(ncclCommDeregister);
    NCCL_CALL(ncclCommWindowRegister);
    NCCL_CALL(ncclCommWindowDeregister);
    NCCL_CALL(ncclCommCount);
    NCCL_CALL(ncclCommCuDevice);
    NCCL_CALL(ncclCommUserRank);
    int (*fake_nccl_held)() = reinterpret_cast<int (*)()>(dlsym(library, "fake_nccl_held"));
};

inline bool comes(const std::function<bool()> &condition, int milliseconds = 5000)
{
    for (int i = 0; i < milliseconds && !condition(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return condition();
}

// State shared by a test's ranks, besides the communicator.
struct Meeting {
    ncclUniqueId ids[2];
    std::atomic<int> count{0};  // ranks at barriers, summed over all barriers
    std::atomic<int> flags[4] = {};
};

// Rank with a current device in the rank's thread.
struct NcclRank {
    int rank, size;
    Meeting &meeting;
    Nccl nccl;
    void *driver = dlopen(FOLDER "/driver/libcuda.so.1", RTLD_NOW);
    cudaStream_t stream = nullptr;
    ncclComm_t comm = nullptr;

    NcclRank(int own, int of, Meeting &shared) : rank(own), size(of), meeting(shared)
    {
        use_device(rank);
        stream = make_stream();
        if (rank == 0) make_ids();
        barrier();
    }
    void make_ids()
    {
        for (ncclUniqueId &id : meeting.ids) EXPECT_EQ(nccl.ncclGetUniqueId(&id), ncclSuccess);
    }
    template <class Call>
    Call call(const char *symbol)
    {
        return reinterpret_cast<Call>(dlsym(driver, symbol));
    }
    void use_device(int device)
    {
        CUcontext context = nullptr;
        EXPECT_EQ(call<decltype(&::cuInit)>("cuInit")(0), CUDA_SUCCESS);
        EXPECT_EQ(call<decltype(&::cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context,
                                                                                          device),
                  CUDA_SUCCESS);
        EXPECT_EQ(call<decltype(&::cuCtxPushCurrent)>("cuCtxPushCurrent_v2")(context),
                  CUDA_SUCCESS);
        cudaGetLastError();  // the runtime's first call
    }
    // Waits until all ranks have come here equally often.
    void barrier()
    {
        const int mine = ++meeting.count, all = (mine + size - 1) / size * size;
        EXPECT_TRUE(comes([&] { return meeting.count >= all; }, 10000)) << "a rank is missing";
    }
    cudaStream_t make_stream()
    {
        cudaStream_t made = nullptr;
        EXPECT_EQ(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, 0), cudaSuccess);
        return made;
    }
    static ncclConfig_t config(int blocking = 1)
    {
        ncclConfig_t made = NCCL_CONFIG_INITIALIZER;
        made.blocking = blocking;
        return made;
    }
    ncclComm_t make_comm(int which = 0)
    {
        ncclConfig_t blocking = config();
        ncclComm_t made = nullptr;
        EXPECT_EQ(nccl.ncclCommInitRankConfig(&made, size, meeting.ids[which], rank, &blocking),
                  ncclSuccess);
        return made;
    }
    void init() { comm = make_comm(); }
    void destroy()
    {
        EXPECT_EQ(nccl.ncclCommDestroy(comm), ncclSuccess);
        comm = nullptr;
    }
    ncclResult_t state()
    {
        ncclResult_t told = ncclSuccess;
        EXPECT_EQ(nccl.ncclCommGetAsyncError(comm, &told), ncclSuccess);
        return told;
    }
    // Polls until a call with the first answer `result` is no longer in progress.
    ncclResult_t outcome(ncclResult_t result)
    {
        comes([&] {
            if (result == ncclInProgress) result = state();
            return result != ncclInProgress;
        });
        return result;
    }
    void synchronize() { EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess); }
    bool is_done(cudaStream_t which) { return cudaStreamQuery(which) == cudaSuccess; }
    bool is_done() { return is_done(stream); }
    // Tells whether a stream is still busy after a while.
    bool hangs(cudaStream_t which, int milliseconds = 30)
    {
        return !comes([&] { return is_done(which); }, milliseconds);
    }
    bool hangs() { return hangs(stream); }
    template <class T>
    T *block(const std::vector<T> &values)
    {
        void *made = nullptr;
        EXPECT_EQ(cudaMalloc(&made, values.size() * sizeof(T) + 1), cudaSuccess);
        std::copy(values.begin(), values.end(), static_cast<T *>(made));  // host memory
        return static_cast<T *>(made);
    }
    float *floats(size_t count, float value) { return block(std::vector<float>(count, value)); }
    ncclResult_t all_reduce(float *place, size_t count = 8, cudaStream_t on = nullptr,
                            ncclComm_t by = nullptr)
    {
        return nccl.ncclAllReduce(place, place, count, ncclFloat, ncclSum, by ? by : comm,
                                  on ? on : stream);
    }
};

using RankBody = std::function<void(NcclRank &)>;

// Runs a rank in each of `size` threads of a fresh process.
inline void in_threads(int size, const RankBody &body)
{
    setenv("FAKE_CUDA_DEVICES", "9.0,9.0,9.0,9.0", 1);
    Meeting meeting;
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < size; ++rank)
        ranks.emplace_back([&, rank] {
            NcclRank own(rank, size, meeting);
            body(own);
        });
    for (std::thread &rank : ranks) rank.join();
}

// Runs a rank in each of `size` processes, forked before any call of CUDA.
inline void in_processes(int size, const RankBody &body)
{
    setenv("FAKE_CUDA_DEVICES", "9.0,9.0,9.0,9.0", 1);
    void *const place =
        mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto *const meeting = new (place) Meeting;
    std::vector<pid_t> ranks;
    for (int rank = 0; rank < size; ++rank) {
        ranks.push_back(fork());
        if (ranks.back()) continue;
        alarm(20);  // a hanging rank fails
        NcclRank own(rank, size, *meeting);
        body(own);
        end_process();
    }
    for (const pid_t rank : ranks) {
        int status = 0;
        EXPECT_EQ(waitpid(rank, &status, 0), rank);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "a rank failed: " << status;
    }
}

// Runs two ranks as threads of a fresh process. The process's end ends hanging ranks.
inline void threads_of_two(const RankBody &body)
{
    in_fresh_process([&] {
        alarm(20);
        in_threads(2, body);
    });
}

}  // namespace yoke::test
