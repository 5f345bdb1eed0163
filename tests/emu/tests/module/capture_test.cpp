// What CUDA forbids while a stream is captured costs the capture: the fakes hold the module, and the core, to that.
#include "module.h"
#include "tests/backend/launch.h"
#include "tests/core/fresh_process.h"

namespace yoke::test {

namespace {

struct Capture {
    Module module;
    void *device = module.open(), *stream = nullptr, *block = nullptr;

    Capture()
    {
        EXPECT_EQ(module->alloc(device, 64, &block), YOKE_OK);
        EXPECT_EQ(module->stream_create(device, 0, &stream), YOKE_OK);
        EXPECT_EQ(module->graph_begin(device, stream), YOKE_OK);
        EXPECT_EQ(fill(), YOKE_OK);
    }
    yoke_status fill() { return module->fill(device, block, 1, 64, stream); }
    yoke_status add()
    {
        auto *x = static_cast<float *>(block);
        return Record(YOKE_OP_ADD, device, stream)
            .in(x, {16})
            .in(x, {16})
            .out(x, {16})
            .run(*Module::table());
    }
    yoke_status end(void **graph) { return module->graph_end(device, stream, graph); }
};

void expect_lost(Capture &capture)
{
    EXPECT_EQ(capture.fill(), YOKE_E_STATE);
    EXPECT_EQ(capture.add(), YOKE_E_STATE);
    EXPECT_NE(failure().message.find("901"), std::string::npos) << failure().message;
    void *graph = nullptr;
    EXPECT_EQ(capture.end(&graph), YOKE_E_STATE);
    EXPECT_NE(failure().message.find("cudaStreamEndCapture"), std::string::npos);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(capture.fill(), YOKE_OK) << "the stream serves again";
    EXPECT_EQ(Module::held().find("graphs"), std::string::npos) << Module::held();
}

}  // namespace

TEST(Captures, AreLostByAWaitForTheDevice)
{
    in_fresh_process([] {
        Capture capture;
        EXPECT_EQ(capture.module->device_synchronize(capture.device), YOKE_E_STATE);
        expect_lost(capture);
    });
}

TEST(Captures, AreLostByAWaitForTheirStreamAndByAskingIt)
{
    in_fresh_process([] {
        Capture capture;
        EXPECT_EQ(capture.module->stream_synchronize(capture.device, capture.stream), YOKE_E_STATE);
        expect_lost(capture);
    });
    in_fresh_process([] {
        Capture capture;
        int32_t idle = 0;
        EXPECT_EQ(capture.module->stream_query(capture.device, capture.stream, &idle),
                  YOKE_E_STATE);
        expect_lost(capture);
    });
}

TEST(Captures, AreNotLostByAWaitForAnotherStream)
{
    in_fresh_process([] {
        Capture capture;
        void *graph = nullptr, *other = nullptr;
        EXPECT_EQ(capture.module->stream_create(capture.device, 0, &other), YOKE_OK);
        EXPECT_EQ(capture.module->stream_synchronize(capture.device, other), YOKE_OK);
        EXPECT_EQ(capture.module->stream_synchronize(capture.device, nullptr), YOKE_OK);
        EXPECT_EQ(capture.end(&graph), YOKE_OK) << failure().message;
        EXPECT_NE(graph, nullptr);
    });
}

}  // namespace yoke::test
