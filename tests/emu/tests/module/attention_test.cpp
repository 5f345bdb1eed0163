// Attention through cuDNN: conditions and results.
#include "attention.h"
#include "cudnn_runs.h"
#include "tests/core/fresh_process.h"

namespace yoke::test {

namespace {

// Beside the own kernels in single precision.
void expect_near(const std::vector<std::vector<float>> &got,
                 const std::vector<std::vector<float>> &wanted)
{
    static constexpr const char *kNames[] = {"result", "query's", "key's", "value's",
                                             "log-sum-exp"};
    for (size_t k = 0; k < 5; ++k) {
        ASSERT_EQ(got[k].size(), wanted[k].size());
        float most = 1;
        for (const float x : wanted[k]) most = std::max(most, std::abs(x));
        for (size_t i = 0; i < got[k].size(); ++i) {
            if (got[k][i] == wanted[k][i]) continue;  // infinities too
            ASSERT_NEAR(got[k][i], wanted[k][i], 3e-3 * most) << kNames[k] << "[" << i << "]";
        }
    }
}

template <class T>
std::vector<std::vector<float>> run_both(void *device, const AttentionCase &asked)
{
    AttentionRun<T> run(device, asked);
    EXPECT_EQ(run.forward(), YOKE_OK) << failure().message;
    EXPECT_EQ(run.backward(), YOKE_OK) << failure().message;
    return run.read();
}

// Returns how many graphs a case runs.
int graphs_of(void *device, const AttentionCase &asked,
              const std::vector<std::vector<float>> *wanted = nullptr)
{
    const int before = std::max(cudnn_runs(false), 0);
    const auto got = run_both<uint16_t>(device, asked);
    if (wanted) expect_near(got, *wanted);
    return std::max(cudnn_runs(false), 0) - before;
}

// Returns the number of graphs, and compares the values with Yoke's own kernels.
int right_graphs_of(void *device, const AttentionCase &asked)
{
    const auto wanted = run_both<float>(device, asked);
    return graphs_of(device, asked, &wanted);
}

// With cuDNN, in a process of its own.
template <class F>
void with_cudnn(const F &body)
{
    in_fresh_process([&] {
        const Module module;
        void *device = Module::open();
        body(module, device);
        module->device_close(device);
        EXPECT_EQ(Module::held(), "");
    });
}

constexpr AttentionCase kPlain = {2, 3, 1, 5, 7, 8, 16};

}  // namespace

TEST(Attention, HasTheOwnKernelsValuesThroughCudnn)
{
    with_cudnn([](const Module &, void *device) {
        AttentionCase c = kPlain;
        EXPECT_EQ(right_graphs_of(device, c), 2);
        c.causal = true;
        EXPECT_EQ(right_graphs_of(device, c), 2);
        EXPECT_EQ(right_graphs_of(device, {2, 3, 1, 6, 6, 8, 8, true, true}), 2) << "packed";
        EXPECT_EQ(right_graphs_of(device, {2, 3, 2, 5, 7, 8, 8}), 2) << "shared heads";
        EXPECT_EQ(right_graphs_of(device, {1, 1, 3, 5, 7, 8, 8, true}), 2) << "one head of keys";
        EXPECT_EQ(right_graphs_of(device, {3, 1, 1, 1, 7, 8, 8}), 2) << "one head, one query";
        EXPECT_EQ(Module::logged(), "");
    });
}

TEST(Attention, IsForTheOwnKernelsWhereCudnnIsNotAskedFor)
{
    with_cudnn([](const Module &, void *device) {
        AttentionCase masked = kPlain, dropped = kPlain;
        masked.masked = true;
        dropped.dropout = 0.5;
        EXPECT_EQ(graphs_of(device, masked), 0);
        EXPECT_EQ(graphs_of(device, dropped), 0);
        EXPECT_EQ(graphs_of(device, {2, 3, 1, 5, 7, 12, 8}), 0) << "a width not in eights";
        EXPECT_EQ(graphs_of(device, {2, 3, 1, 5, 7, 8, 4}), 0);
        EXPECT_EQ(graphs_of(device, {2, 3, 1, 5, 0, 8, 8}), 0) << "no keys";
        EXPECT_EQ(Module::logged(), "");
    });
}

TEST(Attention, IsForTheOwnKernelsWithoutAWordWhereThereIsNoEngine)
{
    with_cudnn([](const Module &, void *device) {
        setenv("FAKE_CUDNN_ENGINES", "0", 1);
        for (int time = 0; time < 2; ++time) EXPECT_EQ(graphs_of(device, kPlain), 0);
        EXPECT_EQ(Module::logged(), "");
    });
}

// The gradient's workspace is 2 bytes a score and 4096 bytes more. The last engine does not need the 4096 bytes.
TEST(Attention, GoesInPartsThatTheWorkspaceHolds)
{
    with_cudnn([](const Module &, void *device) {
        AttentionCase c = {3, 4, 1, 5, 7, 8, 8, true};
        const auto wanted = run_both<float>(device, c);
        const auto parts = [&](uint64_t heads, uint64_t beside) {
            c.workspace_limit = heads * 5 * 7 * 2 + beside;
            return graphs_of(device, c, &wanted) - 1;  // without the forward pass
        };
        EXPECT_EQ(parts(12, 4096), 1);
        EXPECT_EQ(parts(12, 0), 1);
        EXPECT_EQ(parts(11, 0), 2) << "two batches, and one";
        EXPECT_EQ(parts(7, 69), 3) << "a batch each";
        EXPECT_EQ(parts(3, 0), 6) << "half a batch each, rather than three heads and one";
        EXPECT_EQ(parts(1, 0), 12);
        EXPECT_EQ(parts(0, 69), 0) << "not even one head";
        EXPECT_EQ(Module::logged(), "");
    });
}

TEST(Attention, NeedsNoPartsWhereAnyOrderWillDo)
{
    with_cudnn([](const Module &, void *device) {
        AttentionCase c = {2, 1, 2, 5, 7, 8, 8, true};
        const auto wanted = run_both<float>(device, c);
        c.flags = YOKE_LAUNCH_CUDNN_NONDETERMINISTIC;
        EXPECT_EQ(graphs_of(device, c, &wanted), 2);
        EXPECT_EQ(cudnn_runs_of(0), 1) << "the gradient, by the engine whose sums have no order";
        c.workspace_limit = 4 * 5 * 8 * 4;
        EXPECT_EQ(graphs_of(device, c, &wanted), 2);
        c.workspace_limit /= 2;
        EXPECT_EQ(graphs_of(device, c, &wanted), 3)
            << "the sums of query's gradient are within it, too";
        c.flags |= YOKE_LAUNCH_CUDNN_OFF;
        EXPECT_EQ(graphs_of(device, c), 0);
    });
}

// The first launch is captured, and its plans are made meanwhile. Replays use the memory's current contents.
TEST(Attention, MayBeCapturedAndReplayed)
{
    with_cudnn([](const Module &module, void *device) {
        void *stream = nullptr, *graph = nullptr;
        ASSERT_EQ(module->stream_create(device, 0, &stream), YOKE_OK);
        {
            AttentionRun<uint16_t> run(device, kPlain, stream);
            AttentionRun<float> own(device, kPlain, stream);
            ASSERT_EQ(module->graph_begin(device, stream, 0), YOKE_OK);
            Module::keep_scratch();
            EXPECT_EQ(run.forward(), YOKE_OK) << failure().message;
            EXPECT_EQ(run.backward(), YOKE_OK) << failure().message;
            ASSERT_EQ(module->graph_end(device, stream, &graph), YOKE_OK) << failure().message;
            EXPECT_EQ(cudnn_runs(false), 2);
            for (const double seed : {3.0, 8.0}) {
                run.refill(seed);
                own.refill(seed);
                EXPECT_EQ(own.forward(), YOKE_OK);
                EXPECT_EQ(own.backward(), YOKE_OK);
                EXPECT_EQ(module->graph_launch(device, graph, stream), YOKE_OK);
                expect_near(run.read(), own.read());
            }
            EXPECT_EQ(module->graph_destroy(device, graph), YOKE_OK);
            Module::give_scratch_back();
        }
        EXPECT_EQ(module->stream_destroy(device, stream), YOKE_OK);
    });
}

}  // namespace yoke::test
