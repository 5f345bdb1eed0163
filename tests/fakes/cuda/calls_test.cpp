// Calls of CUDA by the module: contexts, failures, devices appearing and disappearing.
#include "core/backend/registry.h"
#include "core/base/error.h"
#include "tests/core/fresh_process.h"
#include "tests/fakes/cuda/fake.h"
#include "tests/fakes/cuda/opened.h"

#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace yoke::test {

TEST(Calls, TheCallersContextIsBackAfterEveryCall)
{
    in_fresh_process([] {
        setenv("FAKE_CUDA_DEVICES", "9.0,9.0", 1);
        Module module;
        void *first = module.open(0), *second = module.open(1), *block = nullptr;
        EXPECT_EQ(module.current(), nullptr) << "opening a device makes nothing current";
        EXPECT_EQ(module.table->alloc(second, 100, &block), YOKE_OK);
        EXPECT_EQ(module.current(), nullptr);

        CUcontext hosts = nullptr;
        module.call<decltype(&::cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&hosts, 0);
        module.call<decltype(&::cuCtxPushCurrent)>("cuCtxPushCurrent_v2")(hosts);
        EXPECT_EQ(module.table->free(second, block, 100), YOKE_OK);
        EXPECT_EQ(module.table->device_synchronize(first), YOKE_OK);
        EXPECT_EQ(module.current(), hosts);
        setenv("FAKE_CUDA_FAIL", "cudaMalloc=700", 1);
        EXPECT_EQ(module.table->alloc(second, 100, &block), YOKE_E_DEVICE_LOST);
        EXPECT_EQ(module.current(), hosts) << "after a failure too";
    });
}

TEST(Calls, AFailureTellsTheCallTheDeviceAndWhatCudaSaid)
{
    in_fresh_process([] {
        setenv("FAKE_CUDA_DEVICES", "9.0,9.0", 1);
        Module module;
        void *device = module.open(1);
        setenv("FAKE_CUDA_FAIL", "cudaMalloc=2", 1);
        int mark = 0;
        void *block = &mark;
        expect_says(YOKE_E_OOM, module.table->alloc(device, 4096, &block),
                    {"cuda:1", "cudaMalloc of 4096 bytes", "cudaErrorFake2 (2)"});
        EXPECT_EQ(block, &mark);
        setenv("FAKE_CUDA_FAIL", "cuMemCreate=2", 1);
        uint64_t chunk = 7;
        expect_says(YOKE_E_OOM, module.table->vmm_create(device, 2 << 20, &chunk),
                    {"cuda:1", "cuMemCreate of 2097152 bytes", "FAKE_ERROR_2 (2)"});
        EXPECT_EQ(chunk, 7u);
    });
}

TEST(Calls, ErrorsBecomeTheStatusThatTellsWhatToDo)
{
    in_fresh_process([] {
        Module module;
        void *device = module.open(0);
        const std::pair<int, yoke_status> statuses[] = {
            {1, YOKE_E_VALUE},         {2, YOKE_E_OOM},           {46, YOKE_E_UNAVAILABLE},
            {100, YOKE_E_UNAVAILABLE}, {209, YOKE_E_UNSUPPORTED}, {214, YOKE_E_DEVICE_LOST},
            {220, YOKE_E_DEVICE_LOST}, {226, YOKE_E_DEVICE_LOST}, {400, YOKE_E_CLOSED},
            {600, YOKE_E_STATE},       {700, YOKE_E_DEVICE_LOST}, {702, YOKE_E_DEVICE_LOST},
            {710, YOKE_E_DEVICE_LOST}, {719, YOKE_E_DEVICE_LOST}, {801, YOKE_E_UNSUPPORTED},
            {901, YOKE_E_STATE},       {909, YOKE_E_TIMEOUT},     {999, YOKE_E_DEVICE_LOST},
            {704, YOKE_E_INTERNAL},
        };
        for (const auto &[error, status] : statuses) {
            setenv("FAKE_CUDA_FAIL", ("cudaStreamSynchronize=" + std::to_string(error)).c_str(), 1);
            EXPECT_EQ(module.table->stream_synchronize(device, nullptr), status) << error;
        }
        setenv("FAKE_CUDA_FAIL", "cudaDeviceSynchronize=719", 1);
        expect_says(YOKE_E_DEVICE_LOST, module.table->device_synchronize(device),
                    {"cudaDeviceSynchronize failed", "restart the process", "Xid"});
    });
}

TEST(Calls, NotReadyIsAnAnswer)
{
    in_fresh_process([] {
        Module module;
        void *device = module.open(0), *event = nullptr;
        ASSERT_EQ(module.table->event_create(device, 0, &event), YOKE_OK);
        setenv("FAKE_CUDA_FAIL", "cudaStreamQuery=600,cudaEventQuery=600", 1);
        int32_t idle = -1, reached = -1;
        EXPECT_EQ(module.table->stream_query(device, nullptr, &idle), YOKE_OK);
        EXPECT_EQ(module.table->event_query(device, event, &reached), YOKE_OK);
        EXPECT_EQ(idle, 0);
        EXPECT_EQ(reached, 0);
        setenv("FAKE_CUDA_FAIL", "cudaStreamQuery=700", 1);
        EXPECT_EQ(module.table->stream_query(device, nullptr, &idle), YOKE_E_DEVICE_LOST);
        EXPECT_EQ(idle, 0) << "a failure leaves its out parameter alone";
    });
}

TEST(Calls, UsableDevicesAreCountedAndTheOthersPassedOver)
{
    in_fresh_process([] {
        setenv("FAKE_CUDA_DEVICES", "3.5,9.0,7.0,9.0", 1);
        Module module;
        int32_t count = -1;
        ASSERT_EQ(module.table->device_count(&count), YOKE_OK);
        ASSERT_EQ(count, 2);
        char why[8] = "unset";
        module.table->why_unavailable(why, sizeof why);
        EXPECT_STREQ(why, "");
        yoke_backend_device_info info{};
        info.struct_size = sizeof info;
        ASSERT_EQ(module.table->device_info(module.open(1), &info), YOKE_OK);
        EXPECT_EQ(info.index, 1);
        EXPECT_STREQ(info.name, "Fake GPU 3");
        EXPECT_STREQ(info.pci, "0000:68:00.0");
        EXPECT_STREQ(info.uuid, "GPU-a3a3a3a3-a3a3-a3a3-a3a3-a3a3a3a3a3a3");
        EXPECT_EQ(info.matrix_dtypes, 1u << YOKE_F16 | 1u << YOKE_BF16);
    });
}

TEST(Calls, WhatIsNoOpenDeviceIsRefused)
{
    in_fresh_process([] {
        Module module;
        void *device = module.open(0), *block = nullptr;
        int other = 0;
        expect_says(YOKE_E_VALUE, module.table->alloc(&other, 64, &block),
                    {"alloc", "not a CUDA device"});
        expect_says(YOKE_E_VALUE, module.table->alloc(nullptr, 64, &block),
                    {"alloc", "not a CUDA device"});
        module.table->device_close(device);
        expect_says(YOKE_E_CLOSED, module.table->alloc(device, 64, &block), {"cuda:0", "not open"});
        module.table->device_close(device);  // once too often is no harm
        EXPECT_EQ(module.open(0), device) << "a device has one handle";
        EXPECT_EQ(module.table->alloc(device, 64, &block), YOKE_OK);
    });
}

TEST(Calls, ADeviceThatCannotBeOpenedSaysWhyAtItsFirstUse)
{
    in_fresh_process([] {
        setenv("FAKE_CUDA_DEVICES", "9.0,9.0", 1);
        setenv("FAKE_CUDA_FAIL", "cuDevicePrimaryCtxRetain@1=46", 1);
        Module module;
        void *first = module.open(0), *second = module.open(1), *block = nullptr;
        expect_says(YOKE_E_UNAVAILABLE, module.table->alloc(first, 64, &block),
                    {"cuda:0", "nvidia-smi -c 0"});
        EXPECT_EQ(block, nullptr);
        EXPECT_EQ(module.table->alloc(second, 64, &block), YOKE_OK)
            << "the other is none the worse";
    });
}

TEST(Calls, ADeviceCostsNoContextBeforeItIsUsed)
{
    in_fresh_process([] {
        setenv("FAKE_CUDA_DEVICES", "9.0,9.0", 1);
        Module module;
        void *first = module.open(0), *second = module.open(1), *block = nullptr;
        for (void *device : {first, second}) {
            yoke_backend_device_info info{};
            info.struct_size = sizeof info;
            EXPECT_EQ(module.table->device_info(device, &info), YOKE_OK);
            EXPECT_GT(info.total_memory, 0u);
        }
        EXPECT_EQ(module.contexts(), 0);
        EXPECT_EQ(module.table->alloc(second, 64, &block), YOKE_OK);
        EXPECT_EQ(module.contexts(), 1);
        module.table->device_close(first);
        module.table->device_close(second);
        EXPECT_EQ(module.contexts(), 0);
    });
}

// ---- peers ----------------------------------------------------------------------------------------------------------

namespace {

// Two devices with a block each; copies go between the blocks.
struct Pair : Module {
    void *devices[2], *blocks[2] = {};

    Pair()
    {
        setenv("FAKE_CUDA_DEVICES", "9.0,9.0", 1);
        for (int i = 0; i < 2; ++i) {
            devices[i] = open(i);
            EXPECT_EQ(table->alloc(devices[i], 64, &blocks[i]), YOKE_OK);
        }
    }
    void copy_to(int i)
    {
        EXPECT_EQ(table->copy(devices[i], blocks[i], blocks[1 - i], 64, YOKE_COPY_PEER, nullptr),
                  YOKE_OK);
        EXPECT_EQ(table->device_synchronize(devices[i]), YOKE_OK);
    }
    // Returns the number of requests to CUDA that let a device reach another device.
    int asked()
    {
        const std::string calls = call<decltype(&::fake_calls)>("fake_calls")(),
                          name = "cudaDeviceEnablePeerAccess=";
        const size_t at = calls.find(name);
        return at == std::string::npos ? 0 : std::stoi(calls.substr(at + name.size()));
    }
};

}  // namespace

TEST(Peers, AreReachedOnceInEachDirection)
{
    in_fresh_process([] {
        Pair pair;
        EXPECT_EQ(pair.asked(), 0) << "nobody copies yet";
        pair.copy_to(0);
        pair.copy_to(0);
        EXPECT_EQ(pair.asked(), 1);
        pair.copy_to(1);
        pair.copy_to(1);
        EXPECT_EQ(pair.asked(), 2);
    });
}

TEST(Peers, AreReachedAnewOnceADeviceWasClosed)
{
    in_fresh_process([] {
        Pair pair;
        pair.copy_to(0);
        pair.copy_to(1);
        ASSERT_EQ(pair.table->free(pair.devices[1], pair.blocks[1], 64), YOKE_OK);
        pair.table->device_close(pair.devices[1]);
        pair.devices[1] = pair.open(1);
        ASSERT_EQ(pair.table->alloc(pair.devices[1], 64, &pair.blocks[1]), YOKE_OK);
        pair.copy_to(0);  // no failure if another library has already enabled the access
        pair.copy_to(1);
        EXPECT_EQ(pair.asked(), 4);
    });
}

namespace {

// Maps a chunk on a device, and copies its first bytes to a block of another device.
void copy_from_chunk(Pair &pair, int from)
{
    constexpr uint64_t kBytes = 2 << 20;
    void *range = nullptr;
    uint64_t chunk = 0;
    ASSERT_EQ(pair.table->vmm_reserve(pair.devices[from], kBytes, &range), YOKE_OK);
    ASSERT_EQ(pair.table->vmm_create(pair.devices[from], kBytes, &chunk), YOKE_OK);
    ASSERT_EQ(pair.table->vmm_map(pair.devices[from], range, kBytes, chunk), YOKE_OK);
    ASSERT_EQ(pair.table->fill(pair.devices[from], range, 7, 64, nullptr), YOKE_OK);
    ASSERT_EQ(pair.table->device_synchronize(pair.devices[from]), YOKE_OK);
    ASSERT_EQ(pair.table->copy(pair.devices[1 - from], pair.blocks[1 - from], range, 64,
                               YOKE_COPY_PEER, nullptr),
              YOKE_OK);
    char bytes[64] = {};
    ASSERT_EQ(pair.table->copy(pair.devices[1 - from], bytes, pair.blocks[1 - from], 64,
                               YOKE_COPY_DEVICE_TO_HOST, nullptr),
              YOKE_OK);
    ASSERT_EQ(pair.table->device_synchronize(pair.devices[1 - from]), YOKE_OK);
    EXPECT_EQ(bytes[0], 7);
    EXPECT_EQ(bytes[63], 7);
}

}  // namespace

TEST(Peers, ReadMappedChunksOfBeforeAndAfterTheyWereReached)
{
    for (const char *can : {"1", "0"})
        in_fresh_process([can] {
            setenv("FAKE_CUDA_PEERS", can, 1);
            Pair pair;
            copy_from_chunk(pair, 0);
            copy_from_chunk(pair, 0);
            copy_from_chunk(pair, 1);
        });
}

TEST(Peers, ThatCannotOrShallNotBeReachedAreCopiedFromAllTheSame)
{
    const std::pair<const char *, const char *> settings[] = {{"FAKE_CUDA_PEERS", "0"},
                                                              {"YOKE_NO_PEER_ACCESS", "1"}};
    for (const auto &[name, value] : settings)
        in_fresh_process([&, name = name, value = value] {
            setenv(name, value, 1);
            Pair pair;
            pair.copy_to(0);
            EXPECT_EQ(pair.asked(), 0) << name;
        });
}

TEST(Calls, AForkedChildIsRefused)
{
    in_fresh_process([] {
        Module module;
        void *device = module.open(0);
        EXPECT_TRUE(passes_in_child([&] {
            module.table->after_fork();
            int32_t count = -1;
            void *again = nullptr;
            expect_says(YOKE_E_FORKED, module.table->device_count(&count), {"spawn or exec"});
            expect_says(YOKE_E_FORKED, module.table->device_open(0, &again), {"spawn or exec"});
            expect_says(YOKE_E_FORKED, module.table->device_synchronize(device), {"spawn or exec"});
            module.table->device_close(device);
        }));
        EXPECT_EQ(module.table->device_synchronize(device), YOKE_OK);
    });
}

}  // namespace yoke::test
