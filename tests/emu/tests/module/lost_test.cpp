// A device lost by a kernel's failure: the callers that get the error, and the fate of the device's resources.
#include <algorithm>

#include "module.h"
#include "tests/backend/launch.h"
#include "tests/core/fresh_process.h"

namespace yoke::test {

namespace {

constexpr uint64_t kLostBytes = 256;

struct Lost {
    Module module;
    void *device = module.open(), *block = nullptr, *pinned = nullptr, *stream = nullptr,
         *event = nullptr, *graph = nullptr, *range = nullptr;
    uint64_t chunk = 0, page = 0;

    // Holds a resource of each kind that a program must give back. The order of queued work is reset. Otherwise a
    // launch may run at once by chance, depending on earlier tests.
    Lost()
    {
        setenv("FAKE_CUDA_SEED", "20", 1);
        EXPECT_EQ(module->alloc(device, kLostBytes, &block), YOKE_OK);
        EXPECT_EQ(module->host_alloc(device, kLostBytes, &pinned), YOKE_OK);
        EXPECT_EQ(module->stream_create(device, 0, &stream), YOKE_OK);
        EXPECT_EQ(module->event_create(device, 0, &event), YOKE_OK);
        EXPECT_EQ(run(YOKE_OP_MATMUL), YOKE_OK) << failure().message;
        EXPECT_EQ(module->graph_begin(device, stream, YOKE_LAUNCH_CUDNN_OFF), YOKE_OK);
        EXPECT_EQ(run(YOKE_OP_ADD), YOKE_OK);
        EXPECT_EQ(module->graph_end(device, stream, &graph), YOKE_OK);
        EXPECT_EQ(module->vmm_granularity(device, &page), YOKE_OK);
        EXPECT_EQ(module->vmm_reserve(device, page, &range), YOKE_OK);
        EXPECT_EQ(module->vmm_create(device, page, &chunk), YOKE_OK);
        EXPECT_EQ(module->vmm_map(device, range, page, chunk), YOKE_OK);
        EXPECT_EQ(module->device_synchronize(device), YOKE_OK);
    }
    yoke_status run(int32_t op)
    {
        auto *x = static_cast<float *>(block);
        return Record(op, device, stream)
            .in(x, {4, 4})
            .in(x + 16, {4, 4})
            .out(x + 32, {4, 4})
            .run(*Module::table());
    }
    // Starts work that meets a wrong address, and goes on until the work is done. No call reports the error.
    void lose(const char *error)
    {
        setenv("FAKE_CUDA_WORK_FAIL", error, 1);
        EXPECT_EQ(run(YOKE_OP_ADD), YOKE_OK) << "a launch does not wait for what it starts";
        while (!Module::fake<decltype(&fake_lose)>("fake_lose")(0, 0)) {
            const yoke_status status = run(YOKE_OP_ADD);
            if (status) return;
        }
    }
    std::vector<yoke_status> give_all_back()
    {
        return {
            module->graph_destroy(device, graph),   module->event_destroy(device, event),
            module->vmm_unmap(device, range, page), module->vmm_release(device, range, page),
            module->stream_destroy(device, stream), module->host_free(device, pinned, kLostBytes),
            module->free(device, block, kLostBytes)};
    }
};

int64_t lines_logged()
{
    return std::count(Module::logged().begin(), Module::logged().end(), '\n');
}

void expect_said(const std::vector<const char *> &texts)
{
    for (const char *text : texts)
        EXPECT_NE(failure().message.find(text), std::string::npos)
            << "'" << text << "' is not in: " << failure().message;
}

}  // namespace

TEST(Lost, ALaunchTellsThatEarlierWorkIsTheCause)
{
    for (const char *error : {"214", "700", "710", "716", "719"})
        EXPECT_TRUE(passes_in_child([&] {
            Lost lost;
            lost.lose(error);
            EXPECT_EQ(lost.run(YOKE_OP_MUL), YOKE_E_DEVICE_LOST);
            expect_said({"mul: cuda:0: found at mul, caused by earlier work on this device", error,
                         "restart the process", "compute-sanitizer", "Xid"});
            EXPECT_EQ(failure().message.find("refused"), std::string::npos) << failure().message;
            EXPECT_EQ(lost.run(YOKE_OP_MATMUL), YOKE_E_DEVICE_LOST);
            expect_said({"caused by earlier work on this device"});
        })) << error;
}

TEST(Lost, WhatALaunchItselfIsRefusedForIsStillToldAsThat)
{
    in_fresh_process([] {
        Lost lost;
        for (const char *error : {"1", "98", "209", "701"}) {
            setenv("FAKE_CUDA_FAIL", (std::string("cudaLaunchKernel=") + error).c_str(), 1);
            EXPECT_NE(lost.run(YOKE_OP_MUL), YOKE_OK);
            expect_said({"mul: cuda:0 refused a launch", error});
            EXPECT_EQ(failure().message.find("earlier"), std::string::npos) << failure().message;
        }
    });
}

// cudaGetLastError() after a launch also returns the error of an earlier call; such an error is no loss.
TEST(Lost, WhatAnEarlierCallLeftIsNotTheLaunchesFault)
{
    in_fresh_process([] {
        Lost lost;
        auto *x = static_cast<float *>(lost.block);
        for (const char *error : {"9", "600", "704"}) {
            EXPECT_EQ(lost.module->fill(lost.device, x, 0, kLostBytes, lost.stream), YOKE_OK);
            setenv("FAKE_CUDA_PENDING", error, 1);
            const yoke_status status = lost.run(YOKE_OP_ADD);
            EXPECT_TRUE(status && status != YOKE_E_DEVICE_LOST) << status;
            expect_said({"add: cuda:0: found at add, caused by an earlier call of CUDA", error,
                         "whose result was not checked", "compute-sanitizer --report-api-errors"});
            EXPECT_EQ(failure().message.find("refused"), std::string::npos) << failure().message;
            EXPECT_EQ(failure().message.find("lost"), std::string::npos) << failure().message;
            unsetenv("FAKE_CUDA_PENDING");
            EXPECT_EQ(lost.run(YOKE_OP_ADD), YOKE_OK) << "it was told, and is forgotten";
            EXPECT_EQ(lost.module->stream_synchronize(lost.device, lost.stream), YOKE_OK);
        }
    });
}

TEST(Lost, EveryCallFailsByItUntilTheProcessEnds)
{
    in_fresh_process([] {
        Lost lost;
        lost.lose("700");
        unsetenv("FAKE_CUDA_WORK_FAIL");
        void *more = nullptr;
        int32_t yes = 0;
        for (int time = 0; time < 2; ++time) {
            EXPECT_EQ(lost.module->device_synchronize(lost.device), YOKE_E_DEVICE_LOST);
            expect_said({"cudaDeviceSynchronize", "caused by earlier work on this device"});
            EXPECT_EQ(lost.module->alloc(lost.device, 64, &more), YOKE_E_DEVICE_LOST);
            EXPECT_EQ(lost.module->stream_query(lost.device, lost.stream, &yes),
                      YOKE_E_DEVICE_LOST);
            EXPECT_EQ(lost.module->event_synchronize(lost.device, lost.event), YOKE_E_DEVICE_LOST);
            EXPECT_EQ(lost.module->graph_launch(lost.device, lost.graph, lost.stream),
                      YOKE_E_DEVICE_LOST);
        }
    });
}

TEST(Lost, WhatIsGivenBackThenIsNotLogged)
{
    in_fresh_process([] {
        Lost lost;
        lost.lose("700");
        for (const yoke_status status : lost.give_all_back()) EXPECT_EQ(status, YOKE_E_DEVICE_LOST);
        EXPECT_EQ(lost.module->vmm_destroy(lost.device, lost.chunk), YOKE_E_STATE)
            << "it is still mapped";
        lost.module->device_close(lost.device);
        EXPECT_EQ(Module::logged(), "") << "the caller got the error";
        void *again = lost.module.open();  // if the process goes on, it gets the error again
        EXPECT_EQ(lost.module->device_synchronize(again), YOKE_E_DEVICE_LOST);
    });
}

TEST(Lost, ADeviceThatIsFoundLostWhenItClosesLogsOneLine)
{
    in_fresh_process([] {
        Lost lost;
        Module::fake<decltype(&fake_lose)>("fake_lose")(0, 719);
        lost.module->device_close(lost.device);
        EXPECT_EQ(lines_logged(), 1) << Module::logged();
        EXPECT_NE(Module::logged().find("719"), std::string::npos) << Module::logged();
    });
}

}  // namespace yoke::test
