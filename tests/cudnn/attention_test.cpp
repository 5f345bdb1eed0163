// The real cuDNN's verdict on graphs of attention, card by card. Its engines are compiled when a plan is made, so that
// few are asked for.
#include "kernels/cuda/host/cudnn/attention_graph.h"
#include "tests/cudnn/asked.h"

namespace yoke::cuda {

namespace {

enum class Pass { kForward, kInOrder, kAccumulated };

HeadStrides dense(int64_t heads, int64_t length, int64_t width)
{
    return {heads * length * width, length * width, width};
}

// Returns a shape with query, key and value of a row side by side, as from a single product.
AttentionShape packed(yoke_dtype dtype)
{
    constexpr int64_t kBatch = 8, kHeads = 12, kLength = 1024, kWidth = 64, kRow = kHeads * kWidth;
    const HeadStrides in = {kLength * 3 * kRow, kWidth, 3 * kRow},
                      out = {kLength * kRow, kWidth, kRow};
    return {dtype, kBatch, kHeads, kHeads, kLength, kLength, kWidth, kWidth, true,
            16,    in,     in,     in,     out,     out,     in,     in,     in};
}

AttentionShape apart(int64_t key_heads, int64_t queries, int64_t keys, int64_t width,
                     int64_t value_width, bool causal)
{
    constexpr int64_t kBatch = 2, kHeads = 8;
    const HeadStrides query = dense(kHeads, queries, width), key = dense(key_heads, keys, width),
                      value = dense(key_heads, keys, value_width),
                      result = dense(kHeads, queries, value_width);
    return {YOKE_F16, kBatch, kHeads, key_heads, queries, keys,   width, value_width, causal,
            16,       query,  key,    value,     result,  result, query, key,         value};
}

// Adds a bias of keys, which has the axes that are true. Its rows lie side by side.
AttentionShape with_bias(AttentionShape shape, bool batch, bool head, bool row)
{
    const int64_t rows = row ? shape.queries * shape.keys : shape.keys;
    shape.has_bias = true;
    shape.bias = {batch ? rows * (head ? shape.heads : 1) : 0, head ? rows : 0,
                  row ? shape.keys : 0};
    shape.bias_alignment = 2;
    return shape;
}

}  // namespace

class Attentions : public OnCard {
protected:
    // Returns the workspace of the chosen plan, in bytes; less than 0 if there is no plan.
    int64_t workspace(const AttentionShape &shape, Pass pass, uint64_t limit = kWorkspaceLimit)
    {
        Graph graph(*cudnn_calls(), target());
        EXPECT_TRUE(pass == Pass::kForward
                        ? build_attention(graph, shape)
                        : build_attention_backward(graph, shape, pass == Pass::kInOrder))
            << graph.steps.failure().said;
        CudnnPlan plan;
        CudnnFailure why;
        if (find_plans(graph, {false, false, true, limit}, 1, &plan, &why))
            return static_cast<int64_t>(plan.workspace);
        return -1;
    }
    // cuDNN's attention needs 8.0.
    bool is_served() const { return GetParam().arch >= 80; }
    // Returns whether the card is the one of its generation of engines that is always asked about.
    bool tells() const
    {
        const std::string name = GetParam().name;
        return GetParam().arch == 75 || GetParam().arch == 80 || name == "NVIDIA H200" ||
               GetParam().arch == 100;
    }
    // Returns whether all is asked: ./dev soak release.
    static bool is_full() { return getenv("YOKE_SOAK") != nullptr; }
    // Returns the widest heads with a gradient, with cuDNN 9.19: docs/gpu-kernels.md has the table.
    int64_t widest_gradient() const { return !is_served() ? 0 : GetParam().arch == 90 ? 256 : 128; }
    int64_t widest() const { return is_served() ? 256 : 0; }
    void expect_served(const AttentionShape &shape, const char *what)
    {
        for (const Pass pass : {Pass::kForward, Pass::kInOrder, Pass::kAccumulated})
            EXPECT_EQ(workspace(shape, pass) >= 0,
                      shape.width <= (pass == Pass::kForward ? widest() : widest_gradient()))
                << what << " of width " << shape.width << ", pass " << static_cast<int>(pass);
    }
};

TEST_P(Attentions, OfGpt2HasEngines)
{
    if (!is_full() && !tells()) return;
    const AttentionShape shape = packed(is_served() ? YOKE_BF16 : YOKE_F16);
    const int64_t forward = workspace(shape, Pass::kForward);
    EXPECT_EQ(forward >= 0, is_served());
    if (!is_served()) return;
    // The gradients of scores take 2 bytes each, and the rest is small.
    const int64_t scores = shape.batch * shape.heads * shape.queries * shape.keys * 2;
    EXPECT_GE(workspace(shape, Pass::kInOrder), 0);
    EXPECT_LT(workspace(shape, Pass::kAccumulated), scores / 2);
}

TEST_P(Attentions, OfSharedHeadsOddLengthsAndNarrowHeadsHasEngines)
{
    if (!tells() || !is_served()) return;
    const AttentionShape shared = apart(2, 100, 77, 64, 64, false);
    AttentionShape narrow = apart(8, 33, 33, 40, 24, true);
    narrow.statistics_alignment = 4;  // some heads of odd length among others
    for (const AttentionShape &shape : {shared, narrow})
        for (const Pass pass : {Pass::kForward, Pass::kInOrder, Pass::kAccumulated})
            EXPECT_GE(workspace(shape, pass), 0)
                << shape.width << ", pass " << static_cast<int>(pass);
}

// The last width that is served, the next, and the widest. A mask takes engines with more demands than causal
// attention.
TEST_P(Attentions, IsServedAsTheTableSays)
{
    for (const int64_t width : {128, 136, 192, 256}) {
        const AttentionShape plain = apart(8, 256, 256, width, width, false);
        if (is_full() || width == 136 || (width == 128 && widest_gradient() == 128) ||
            (width == 256 && tells()))
            expect_served(with_bias(plain, true, false, true), "masked");
        if (!is_full()) continue;
        expect_served(plain, "full");
        expect_served(apart(8, 256, 256, width, width, true), "causal");
    }
}

TEST_P(Attentions, TakesABiasOfEachBroadcastShape)
{
    if (!tells() || GetParam().arch != 90) return;
    for (int axes = 0; axes < 8; ++axes) {
        if (!is_full() && axes % 4) continue;  // the same for all, or for all heads and queries
        const AttentionShape shape =
            with_bias(apart(8, 77, 77, 64, 64, false), axes & 4, axes & 2, axes & 1);
        for (const Pass pass : {Pass::kForward, Pass::kInOrder, Pass::kAccumulated})
            EXPECT_GE(workspace(shape, pass), 0) << axes << ", pass " << static_cast<int>(pass);
    }
}

// A head's gradients of scores take 2 bytes each, so 256 MiB hold 11,585 positions. cuDNN rounds up to 128.
TEST_P(Attentions, InOrderEndsAtTheLimitOfItsWorkspace)
{
    if (!tells() || GetParam().arch != 90) return;
    const auto is_in_order = [&](int64_t positions) {
        AttentionShape shape = apart(8, positions, positions, 64, 64, true);
        shape.batch = shape.heads = shape.key_heads = 1;
        return workspace(shape, Pass::kInOrder) >= 0;
    };
    EXPECT_TRUE(is_in_order(11520));
    EXPECT_FALSE(is_in_order(11648));
}

TEST_P(Attentions, BeyondWhatCudnnDoesFindsNone)
{
    EXPECT_EQ(workspace(apart(8, 64, 64, 12, 12, false), Pass::kForward), -1) << "not in eights";
    EXPECT_EQ(workspace(apart(8, 64, 64, 512, 512, false), Pass::kInOrder), -1);
    if (!tells() || GetParam().arch != 90) return;
    EXPECT_EQ(workspace(packed(YOKE_F16), Pass::kInOrder, 1 << 20), -1) << "no room";
}

YOKE_ON_EACH_CARD(Attentions);

}  // namespace yoke::cuda
