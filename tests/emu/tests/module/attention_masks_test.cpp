// Masks of attention through cuDNN, as its bias.
#include "attention.h"
#include "attention_runs.h"

namespace yoke::test {

namespace {

AttentionCase masked(std::vector<int64_t> shape, MaskKind kind, std::vector<int64_t> strides = {})
{
    AttentionCase c = {2, 3, 1, 5, 7, 8, 16};
    c.mask = std::move(shape);
    c.mask_strides = std::move(strides);
    c.mask_kind = kind;
    return c;
}

constexpr MaskKind kKinds[] = {MaskKind::kBools, MaskKind::kNumbers};

}  // namespace

TEST(AttentionMasks, OfEachBroadcastShapeGoThroughCudnn)
{
    with_cudnn([](const Module &, void *device) {
        const std::vector<int64_t> shapes[] = {{1, 7},          {5, 7},          {2, 1, 1, 1, 7},
                                               {2, 1, 1, 5, 7}, {3, 1, 5, 7},    {3, 1, 1, 7},
                                               {2, 3, 1, 5, 7}, {2, 3, 1, 1, 7}, {5, 1}};
        for (const MaskKind kind : kKinds)
            for (const auto &shape : shapes)
                EXPECT_EQ(right_graphs_of(device, masked(shape, kind)), 2)
                    << testing::PrintToString(shape);
        EXPECT_EQ(Module::logged(), "");
    });
}

TEST(AttentionMasks, OfAnyStridesGoThroughCudnn)
{
    with_cudnn([](const Module &, void *device) {
        for (const MaskKind kind : kKinds) {
            EXPECT_EQ(right_graphs_of(device, masked({5, 7}, kind, {1, 5})), 2) << "transposed";
            EXPECT_EQ(right_graphs_of(device, masked({5, 7}, kind, {9, 1})), 2) << "with gaps";
            EXPECT_EQ(right_graphs_of(device, masked({5, 7}, kind, {1, 1})), 2) << "overlapping";
            EXPECT_EQ(right_graphs_of(device, masked({2, 3, 1, 5, 7}, kind, {0, 7, 0, 0, 1})), 2)
                << "expanded";
            EXPECT_EQ(right_graphs_of(device, masked({5, 7}, kind, {1, 0})), 2)
                << "the same for all keys";
        }
        EXPECT_EQ(Module::logged(), "");
    });
}

TEST(AttentionMasks, OfSharedHeadsAndOfOneQueryGoThroughCudnn)
{
    with_cudnn([](const Module &, void *device) {
        for (const MaskKind kind : kKinds)
            for (const auto &shape :
                 {std::vector<int64_t>{5, 7}, {2, 3, 2, 5, 7}, {2, 1, 1, 1, 7}}) {
                AttentionCase c = masked(shape, kind);
                c.sharers = 2;
                EXPECT_EQ(right_graphs_of(device, c), 2) << testing::PrintToString(shape);
            }
        AttentionCase one = masked({2, 1, 1, 1, 7}, MaskKind::kBools);
        one.queries = 1;
        EXPECT_EQ(right_graphs_of(device, one), 2);
        EXPECT_EQ(Module::logged(), "");
    });
}

// cuDNN gives NaN for such a row.
TEST(AttentionMasks, ThatForbidAWholeRowGiveZerosAndPassNoGradient)
{
    with_cudnn([](const Module &, void *device) {
        for (const MaskKind kind : kKinds)
            for (const auto &shape : {std::vector<int64_t>{5, 7}, {2, 1, 1, 1, 7}, {3, 1, 5, 7}}) {
                AttentionCase c = masked(shape, kind);
                c.closes = true;
                EXPECT_EQ(right_graphs_of(device, c), 2) << testing::PrintToString(shape);
            }
        EXPECT_EQ(Module::logged(), "");
    });
}

TEST(AttentionMasks, GoInPartsThatTheWorkspaceHolds)
{
    with_cudnn([](const Module &, void *device) {
        for (const MaskKind kind : kKinds)
            for (const auto &shape :
                 {std::vector<int64_t>{5, 7}, {2, 3, 1, 5, 7}, {2, 1, 1, 1, 7}}) {
                AttentionCase c = masked(shape, kind);
                c.workspace_limit = 2 * 5 * 7 * 2;  // two heads
                EXPECT_EQ(right_graphs_of(device, c), 1 + 4) << testing::PrintToString(shape);
            }
        EXPECT_EQ(Module::logged(), "");
    });
}

// A NaN of the operands stays, though it looks like a row without an allowed key.
TEST(AttentionMasks, LeaveNanInTheOtherRows)
{
    with_cudnn([](const Module &, void *device) {
        AttentionCase c = masked({5, 7}, MaskKind::kBools);
        c.closes = true;
        AttentionRun<uint16_t> run(device, c);
        run.refill(NAN);
        EXPECT_EQ(run.forward(), YOKE_OK);
        const auto got = run.read();
        EXPECT_TRUE(std::isnan(got[0][0]));
        EXPECT_EQ(got[0][16], 0) << "the row without an allowed key";
        EXPECT_TRUE(std::isnan(got[4][0]));
        EXPECT_EQ(got[4][1], INFINITY);
    });
}

}  // namespace yoke::test
