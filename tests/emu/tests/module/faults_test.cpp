// Every call for devices, memory, streams, graphs and kernels fails once; see faults.h.
#include "faults.h"
#include "tests/backend/launch.h"

namespace yoke::test {

namespace {

constexpr uint64_t kBytes = 4096;

yoke_status add(Scenario &s, const float *x, float *y, void *stream = nullptr)
{
    return Record(YOKE_OP_ADD, s.device, stream)
        .in(x, {64})
        .in(x, {64})
        .out(y, {64})
        .run(s.table());
}

}  // namespace

TEST(Faults, OfDevicesAndPlainMemory)
{
    expect_every_call_may_fail(
        [](Scenario &s) {
            yoke_backend_device_info info{};
            info.struct_size = sizeof info;
            uint64_t free_bytes = 0, total = 0;
            s.step([&] { return s->device_info(s.device, &info); });
            s.step([&] { return s->mem_info(s.device, &free_bytes, &total); });
            void *block = s.alloc(kBytes), *pinned = nullptr;
            s.step([&] { return s->host_alloc(s.device, kBytes, &pinned); });
            s.step([&] { return s->fill(s.device, block, 1, kBytes, nullptr); });
            s.step([&] {
                return s->copy(s.device, pinned, block, kBytes, YOKE_COPY_DEVICE_TO_HOST, nullptr);
            });
            s.wait();
            EXPECT_EQ(static_cast<char *>(pinned)[kBytes - 1], 1);
            s.step([&] { return s->host_free(s.device, pinned, kBytes); });
            s.free(block, kBytes);
        },
        {"cuInit", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease",
         "cudaGetDeviceProperties", "cudaMemGetInfo", "cudaMalloc", "cudaFree", "cudaHostAlloc",
         "cudaFreeHost", "cudaMemsetAsync", "cudaMemcpyAsync", "cudaStreamSynchronize",
         "cudaDeviceSynchronize", "cuCtxPushCurrent", "cuCtxPopCurrent"});
}

TEST(Faults, OfCopiesBetweenTwoDevices)
{
    setenv("FAKE_CUDA_DEVICES", "9.0,9.0", 1);
    expect_every_call_may_fail(
        [](Scenario &s) {
            void *other = nullptr, *there = nullptr;
            s.open(1, &other);
            if (!other) return;
            uint8_t *here = s.upload(std::vector<uint8_t>(kBytes, 5)), last = 0;
            s.wait();
            s.step([&] { return s->alloc(other, kBytes, &there); });
            s.step([&] { return s->copy(other, there, here, kBytes, YOKE_COPY_PEER, nullptr); });
            s.step([&] {
                return s->copy(other, &last, static_cast<char *>(there) + kBytes - 1, 1,
                               YOKE_COPY_DEVICE_TO_HOST, nullptr);
            });
            EXPECT_EQ(last, 5);
            s.step([&] { return s->stream_synchronize(other, nullptr); });
            s.step([&] { return s->free(other, there, kBytes); });
            s.free(here, kBytes);
            s->device_close(other);
        },
        {"cudaMemcpyAsync", "cudaStreamSynchronize", "cudaPointerGetAttributes",
         "cudaDeviceCanAccessPeer", "cudaDeviceEnablePeerAccess"});
    unsetenv("FAKE_CUDA_DEVICES");
}

TEST(Faults, OfVirtualMemory)
{
    expect_every_call_may_fail(
        [](Scenario &s) {
            uint64_t unit = 0, chunk = 0;
            void *range = nullptr;
            s.step([&] { return s->vmm_granularity(s.device, &unit); });
            s.step([&] { return s->vmm_reserve(s.device, unit, &range); });
            s.step([&] { return s->vmm_create(s.device, unit, &chunk); });
            s.step([&] { return s->vmm_map(s.device, range, unit, chunk); });
            s.step([&] { return s->fill(s.device, range, 1, unit, nullptr); });
            s.step([&] { return s->device_synchronize(s.device); });
            s.step([&] { return s->vmm_unmap(s.device, range, unit); });
            s.step([&] { return s->vmm_destroy(s.device, chunk); });
            s.step([&] { return s->vmm_release(s.device, range, unit); });
        },
        {"cuMemGetAllocationGranularity", "cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate",
         "cuMemRelease", "cuMemMap", "cuMemUnmap", "cuMemSetAccess"});
}

TEST(Faults, OfStreamsAndEvents)
{
    expect_every_call_may_fail(
        [](Scenario &s) {
            void *first = s.stream(), *second = s.stream(), *from = nullptr, *to = nullptr;
            int32_t yes = 0;
            double seconds = -1;
            s.step([&] { return s->event_create(s.device, YOKE_EVENT_TIMING, &from); });
            s.step([&] { return s->event_create(s.device, YOKE_EVENT_TIMING, &to); });
            s.step([&] { return s->event_record(s.device, from, first); });
            s.step([&] { return s->event_wait(s.device, from, second); });
            s.step([&] { return s->event_record(s.device, to, second); });
            s.step([&] { return s->stream_query(s.device, second, &yes); });
            s.step([&] { return s->event_query(s.device, to, &yes); });
            s.step([&] { return s->event_synchronize(s.device, to); });
            s.step([&] { return s->event_elapsed(s.device, from, to, &seconds); });
            EXPECT_GE(seconds, 0);
            s.step([&] { return s->event_destroy(s.device, from); });
            s.step([&] { return s->event_destroy(s.device, to); });
            s.step([&] { return s->stream_destroy(s.device, first); });
            s.step([&] { return s->stream_destroy(s.device, second); });
        },
        {"cudaDeviceGetStreamPriorityRange", "cudaStreamCreateWithPriority", "cudaStreamDestroy",
         "cudaStreamWaitEvent", "cudaStreamQuery", "cudaEventCreateWithFlags", "cudaEventDestroy",
         "cudaEventRecord", "cudaEventQuery", "cudaEventSynchronize", "cudaEventElapsedTime"});
}

// ---- graphs ---------------------------------------------------------------------------------------------------------

namespace {

// Captures the work of `work`. Like the core, ends the capture after any failure, and keeps no graph with a missing
// part.
yoke_status capture(Scenario &s, void *stream, const std::function<yoke_status()> &work,
                    void **graph)
{
    void *made = nullptr;
    if (const yoke_status status = s->graph_begin(s.device, stream, YOKE_LAUNCH_CUDNN_OFF))
        return status;
    Module::keep_scratch();
    const yoke_status started = work();
    const Failure told = failure();
    const yoke_status ended = s->graph_end(s.device, stream, &made);
    if (!started && !ended) *graph = made;
    if (!started && !ended) return YOKE_OK;
    Module::give_scratch_back();
    if (!started) return ended;
    if (!Module::is_lost()) {
        EXPECT_EQ(ended, YOKE_OK) << failure().message;
        EXPECT_EQ(s->graph_destroy(s.device, made), YOKE_OK);
    }
    failure() = told;
    return started;
}

}  // namespace

TEST(Faults, OfGraphs)
{
    expect_every_call_may_fail(
        [](Scenario &s) {
            void *stream = s.stream(), *graph = nullptr;
            float *x = s.upload(std::vector<float>(64, 1)), *y = s.upload(std::vector<float>(64));
            float *z = s.upload(std::vector<float>(64));
            s.wait();
            const auto work = [&] {
                yoke_status status = s->fill(s.device, y, 0, 256, stream);
                if (!status) status = add(s, x, y, stream);
                if (!status)
                    status = Record(YOKE_OP_MATMUL, s.device, stream)
                                 .in(y, {8, 8})
                                 .in(x, {8, 8})
                                 .out(z, {8, 8})
                                 .run(s.table());
                return status;
            };
            s.step([&] { return capture(s, stream, work, &graph); });
            for (int replay = 0; replay < 2; ++replay)
                s.step([&] { return s->graph_launch(s.device, graph, stream); });
            s.wait(stream);
            s.step([&] { return s->graph_destroy(s.device, graph); });
            Module::give_scratch_back();
            s.step([&] { return s->stream_destroy(s.device, stream); });
            EXPECT_EQ(s.download(z, 64), std::vector<float>(64, 16));
            s.free(x, 256);
            s.free(y, 256);
        },
        {"cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate",
         "cudaGraphDestroy", "cudaGraphLaunch", "cudaGraphExecDestroy", "cudaLaunchKernel",
         "cublasLtMatmul"});
}

// ---- kernels --------------------------------------------------------------------------------------------------------

TEST(Faults, OfLaunchesAndOfWhatIsCalledBesideThem)
{
    expect_every_call_may_fail(
        [](Scenario &s) {
            float *x = s.upload(ramp<float>(8)), *put = s.upload(std::vector<float>(8)),
                  *sums = s.upload(std::vector<float>(8));
            int64_t *index = s.upload<int64_t>({1, 3}), *ones = s.upload(std::vector<int64_t>(8));
            s.step([&] {
                return Record(YOKE_OP_ONE_HOT, s.device)
                    .in(index, {2})
                    .out(ones, {2, 4})
                    .param(int64_t{4})
                    .run(s.table());
            });
            s.step([&] {
                return Record(YOKE_OP_INDEX_PUT, s.device)
                    .in(x, {8})
                    .in(index, {2})
                    .in(x, {2})
                    .out(put, {8})
                    .param(int64_t{0}, YOKE_ARG_BOOL)
                    .param(int64_t{0})
                    .param(int64_t{1}, YOKE_ARG_BOOL)
                    .run(s.table());
            });
            s.step([&] {
                return Record(YOKE_OP__EMBEDDING_BACKWARD, s.device)
                    .in(x, {2, 2})
                    .in(index, {2})
                    .out(sums, {4, 2})
                    .param(int64_t{4})
                    .param(int64_t{0}, YOKE_ARG_NONE)
                    .run(s.table());
            });
            EXPECT_EQ(s.download(ones, 8), (std::vector<int64_t>{0, 1, 0, 0, 0, 0, 0, 1}));
            EXPECT_EQ(s.download(put, 8), (std::vector<float>{0, 0, 2, 1, 4, 5, 6, 7}));
            EXPECT_EQ(s.download(sums, 8), (std::vector<float>{0, 0, 0, 1, 0, 0, 2, 3}));
            s.wait();
            s.free(x, 32);
            s.free(index, 16);
        },
        {"cudaLaunchKernel", "cudaMemsetAsync"});
}

// Two rows of doubles that are too long for a block: by key, then by row, each time by CUB.
TEST(Faults, OfSortsOfLongRows)
{
    constexpr int64_t kLength = 2049;
    expect_every_call_may_fail(
        [](Scenario &s) {
            double *x = s.upload(ramp<double>(2 * kLength, 0, -1)),
                   *values = s.upload(std::vector<double>(2 * kLength));
            int64_t *indices = s.upload(std::vector<int64_t>(2 * kLength));
            s.step([&] {
                return Record(YOKE_OP_SORT, s.device)
                    .in(x, {2, kLength})
                    .out(values, {2, kLength})
                    .out(indices, {2, kLength})
                    .param(int64_t{1})
                    .param(int64_t{0}, YOKE_ARG_BOOL)
                    .run(s.table());
            });
            const auto sorted = s.download(values, 2 * kLength);
            EXPECT_EQ(sorted[0], 1.0 - kLength);
            EXPECT_EQ(sorted[2 * kLength - 1], static_cast<double>(-kLength));
            EXPECT_EQ(s.download(indices, 2 * kLength)[0], kLength - 1);
            s.wait();
            s.free(x, 2 * kLength * sizeof(double));
        },
        {"cudaLaunchKernel"});
}

}  // namespace yoke::test
