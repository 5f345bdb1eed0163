// Calls that CUDA forbids during a capture spoil the capture. The fakes check that the module and the core make no
// such call.
#include <thread>

#include "module.h"
#include "tests/backend/launch.h"
#include "tests/core/fresh_process.h"

namespace yoke::test {

namespace {

struct Capture {
    Module module;
    void *device = module.open(), *stream = nullptr, *block = nullptr;

    explicit Capture(uint32_t flags = YOKE_LAUNCH_CUDNN_OFF)
    {
        EXPECT_EQ(module->alloc(device, 64, &block), YOKE_OK);
        EXPECT_EQ(module->stream_create(device, 0, &stream), YOKE_OK);
        EXPECT_EQ(module->graph_begin(device, stream, flags), YOKE_OK);
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

// ---- the first product of all ---------------------------------------------------------------------------------------

namespace {

yoke_status multiply(Capture &c)
{
    auto *x = static_cast<float *>(c.block);
    return Record(YOKE_OP_MATMUL, c.device, c.stream)
        .in(x, {2, 2})
        .in(x, {2, 2})
        .out(x + 4, {2, 2})
        .run(*Module::table());
}

yoke_status convolve(Capture &c, void *stream)
{
    auto *x = static_cast<float *>(c.block);
    return Record(YOKE_OP__CONV, c.device, stream)
        .in(x, {1, 1, 2, 2})
        .in(x + 4, {1, 1, 1, 1})
        .absent()
        .out(x + 8, {1, 1, 2, 2})
        .axes({1, 1, 0, 0, 1, 1})
        .param(int64_t{1})
        .run(*Module::table());
}

}  // namespace

TEST(Captures, MayHoldTheFirstConvolutionOfAProcess)
{
    in_fresh_process([] {
        Capture capture(0);
        void *graph = nullptr;
        Module::keep_scratch();
        EXPECT_EQ(convolve(capture, capture.stream), YOKE_OK) << failure().message;
        EXPECT_EQ(capture.end(&graph), YOKE_OK) << failure().message;
        const auto &m = capture.module;
        EXPECT_EQ(m->graph_launch(capture.device, graph, capture.stream), YOKE_OK);
        EXPECT_EQ(m->stream_synchronize(capture.device, capture.stream), YOKE_OK);
        const auto *x = static_cast<float *>(capture.block);
        EXPECT_GT(x[0], 0);
        EXPECT_EQ(x[8], x[0] * x[0]);
        const std::string told = Module::logged();
        EXPECT_TRUE(told.empty() || told.find("was built without cuDNN") != told.npos) << told;
    });
}

TEST(Captures, MayHoldTheFirstProductOfAProcess)
{
    for (const char *tuning : {"0", "1"})
        EXPECT_TRUE(passes_in_child([&] {
            setenv("YOKE_CUBLASLT_AUTOTUNE", tuning, 1);
            Capture capture;
            void *graph = nullptr;
            Module::keep_scratch();
            EXPECT_EQ(multiply(capture), YOKE_OK) << failure().message;
            EXPECT_EQ(capture.end(&graph), YOKE_OK) << failure().message;
            const auto &m = capture.module;
            EXPECT_EQ(m->graph_launch(capture.device, graph, capture.stream), YOKE_OK);
            EXPECT_EQ(m->stream_synchronize(capture.device, capture.stream), YOKE_OK);
            const auto *x =
                static_cast<float *>(capture.block);  // filled by the capture with bytes of 1
            EXPECT_GT(x[0], 0);
            EXPECT_EQ(x[4], 2 * x[0] * x[0]);
        })) << tuning;
}

TEST(Captures, NeedNoLibraryWhereTheyHoldNoProduct)
{
    in_fresh_process([] {
        setenv("FAKE_CUBLASLT_VERSION", "10000", 1);  // too old for the module
        Capture capture;
        void *graph = nullptr;
        EXPECT_EQ(capture.add(), YOKE_OK);
        EXPECT_EQ(capture.end(&graph), YOKE_OK) << failure().message;
        EXPECT_EQ(Module::calls().count("cublasLtCreate"), 0u);
    });
}

// ---- captures of another library in the process ---------------------------------------------------------------------

namespace {

// Calls every entry that makes a call forbidden in such a capture, such as the first product of a shape. The stand-in
// begins like a capture of Yoke's, so cuBLASLt's handle exists: a handle whose first product creates it waits for the
// device.
void do_all_that_is_unsafe(Capture &c, void *other, void *event)
{
    void *more = nullptr, *pinned = nullptr, *made = nullptr, *range = nullptr;
    uint64_t free_bytes = 0, total = 0, page = 0;
    int32_t yes = 0;
    const auto &m = c.module;
    EXPECT_EQ(m->alloc(c.device, 64, &more), YOKE_OK) << failure().message;
    EXPECT_EQ(m->free(c.device, more, 64), YOKE_OK) << failure().message;
    EXPECT_EQ(m->host_alloc(c.device, 64, &pinned), YOKE_OK) << failure().message;
    EXPECT_EQ(m->host_free(c.device, pinned, 64), YOKE_OK) << failure().message;
    EXPECT_EQ(m->mem_info(c.device, &free_bytes, &total), YOKE_OK) << failure().message;
    EXPECT_EQ(m->stream_query(c.device, other, &yes), YOKE_OK) << failure().message;
    EXPECT_EQ(m->stream_synchronize(c.device, other), YOKE_OK) << failure().message;
    EXPECT_EQ(m->event_record(c.device, event, other), YOKE_OK) << failure().message;
    EXPECT_EQ(m->event_query(c.device, event, &yes), YOKE_OK) << failure().message;
    EXPECT_EQ(m->event_synchronize(c.device, event), YOKE_OK) << failure().message;
    EXPECT_EQ(m->stream_create(c.device, 0, &made), YOKE_OK) << failure().message;
    EXPECT_EQ(m->stream_destroy(c.device, made), YOKE_OK) << failure().message;
    EXPECT_EQ(m->vmm_granularity(c.device, &page), YOKE_OK) << failure().message;
    EXPECT_EQ(m->vmm_reserve(c.device, page, &range), YOKE_OK) << failure().message;
    EXPECT_EQ(m->vmm_release(c.device, range, page), YOKE_OK) << failure().message;
    auto *x = static_cast<float *>(c.block);
    EXPECT_EQ(Record(YOKE_OP_MATMUL, c.device, other)
                  .in(x, {2, 2})
                  .in(x + 4, {2, 2})
                  .out(x + 8, {2, 2})
                  .run(*Module::table()),
              YOKE_OK)
        << failure().message;
    EXPECT_EQ(convolve(c, other), YOKE_OK) << failure().message;
    EXPECT_EQ(m->stream_synchronize(c.device, other), YOKE_OK) << failure().message;
}

}  // namespace

TEST(Captures, OfOthersAreNotLostByAnyCallFromAnyThread)
{
    for (const char *mode : {"global", "thread"})
        for (const char *tuning : {"0", "1"})
            for (const bool same_thread : {true, false})
                EXPECT_TRUE(passes_in_child([&] {
                    setenv("FAKE_CUDA_CAPTURE_MODE", mode, 1);
                    setenv("YOKE_CUBLASLT_AUTOTUNE", tuning, 1);
                    const Module module;
                    void *device = Module::open(), *other = nullptr, *event = nullptr;
                    EXPECT_EQ(module->stream_create(device, 0, &other), YOKE_OK);
                    EXPECT_EQ(module->event_create(device, 0, &event), YOKE_OK);
                    Capture capture(0);  // stands for a capture by PyTorch
                    const auto all = [&] { do_all_that_is_unsafe(capture, other, event); };
                    if (same_thread)
                        all();
                    else
                        std::thread(all).join();
                    void *graph = nullptr;
                    EXPECT_EQ(capture.end(&graph), YOKE_OK) << failure().message;
                })) << mode
                    << " " << same_thread;
}

}  // namespace yoke::test
