// Attention through cuDNN: conditions and results.
#include "attention.h"
#include "attention_runs.h"

namespace yoke::test {

namespace {

const AttentionCase kPlain = {2, 3, 1, 5, 7, 8, 16};

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

TEST(Attention, HasWidthsTo256ThroughCudnn)
{
    with_cudnn([](const Module &, void *device) {
        for (const int64_t width : {8, 40, 128, 136, 256})
            EXPECT_EQ(right_graphs_of(device, {1, 2, 1, 5, 7, width, width}), 2) << width;
        EXPECT_EQ(Module::logged(), "");
    });
}

TEST(Attention, IsForTheOwnKernelsWithoutAWordWhereCudnnIsNotAskedFor)
{
    with_cudnn([](const Module &, void *device) {
        EXPECT_EQ(graphs_of(device, {2, 3, 1, 5, 0, 8, 8}), 0) << "no keys";
        AttentionCase off = kPlain;
        off.flags = YOKE_LAUNCH_CUDNN_OFF;
        EXPECT_EQ(graphs_of(device, off), 0);
        run_both<float>(device, {2, 3, 1, 5, 7, 12, 8});
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
