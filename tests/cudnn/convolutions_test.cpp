// The real cuDNN's verdict on graphs of convolutions, card by card.
#include "kernels/cuda/host/cudnn/conv_graph.h"
#include "kernels/cuda/host/cudnn/winner.h"
#include "tests/cudnn/asked.h"
#include "tests/cudnn/host.h"

namespace yoke::cuda {

namespace {

using kernels::Conv;
using kernels::ConvKind;

struct Layer {
    const char *name;
    int64_t n, c, side, o, window, stride, padding, dilation, groups;
};

// Layers of a ResNet, and odd layers.
constexpr Layer kLayers[] = {
    {"3x3", 32, 64, 56, 64, 3, 1, 1, 1, 1},
    {"3x3 of 512", 32, 512, 7, 512, 3, 1, 1, 1, 1},
    {"3x3 by twos", 32, 128, 56, 128, 3, 2, 1, 1, 1},
    {"1x1", 32, 256, 14, 1024, 1, 1, 0, 1, 1},
    {"1x1 by twos", 32, 256, 56, 512, 1, 2, 0, 1, 1},
    {"a stem", 32, 3, 224, 64, 7, 2, 3, 1, 1},
    {"groups", 32, 128, 28, 128, 3, 1, 1, 1, 4},
    {"apart", 8, 64, 28, 64, 3, 1, 2, 2, 1},
    {"odd channels", 3, 5, 17, 7, 3, 1, 1, 1, 1},
};

constexpr yoke_dtype kDtypes[] = {YOKE_F32, YOKE_F16, YOKE_BF16};
constexpr ConvKind kKinds[] = {ConvKind::kForward, ConvKind::kData, ConvKind::kWeight};

Conv conv_of(const Layer &layer, ConvKind kind, yoke_dtype dtype)
{
    const int64_t out =
        (layer.side + 2 * layer.padding - layer.dilation * (layer.window - 1) - 1) / layer.stride +
        1;
    Conv conv{};
    conv.kind = kind;
    conv.dtype = dtype;
    conv.n = layer.n, conv.c = layer.c, conv.o = layer.o;
    conv.h = conv.w = layer.side;
    conv.oh = conv.ow = out;
    conv.kh = conv.kw = layer.window;
    for (int axis = 0; axis < 2; ++axis) {
        conv.stride[axis] = layer.stride;
        conv.padding[axis] = layer.padding;
        conv.dilation[axis] = layer.dilation;
    }
    conv.groups = layer.groups;
    return conv;
}

// Some engines for these are compiled when a plan is made, for half a second and more.
bool may_be_compiled(const Layer &layer, ConvKind kind)
{
    return layer.groups > 1 || (layer.c < 64 && kind == ConvKind::kWeight);
}

constexpr ConvTerms kAligned = {{16, 16, 16, 16}, false};

EngineRules rules_of(const Conv &conv, bool tf32)
{
    return {conv.dtype == YOKE_F32, tf32, true, kWorkspaceLimit};
}

}  // namespace

class Convolutions : public OnCard {
protected:
    // Returns the plans for a graph, the chosen plan first; empty if there is no plan. The graph must be accepted.
    std::vector<CudnnPlan> plans(const Conv &conv, const EngineRules &rules, int wanted = 1,
                                 const ConvTerms &terms = kAligned)
    {
        Graph graph(*cudnn_calls(), target());
        EXPECT_TRUE(build_conv(graph, conv, terms)) << graph.steps.failure().said;
        std::vector<CudnnPlan> found(static_cast<size_t>(wanted));
        CudnnFailure why;
        const int count = find_plans(graph, rules, wanted, found.data(), &why);
        found.resize(static_cast<size_t>(count));
        return found;
    }
};

TEST_P(Convolutions, HaveADeterministicEngineInEveryDtype)
{
    for (const Layer &layer : kLayers)
        for (const ConvKind kind : kKinds)
            for (const yoke_dtype dtype : kDtypes) {
                if (dtype == YOKE_BF16 && !has_bf16()) continue;
                if (dtype != YOKE_F32 && may_be_compiled(layer, kind)) continue;
                const Conv conv = conv_of(layer, kind, dtype);
                const auto found = plans(conv, rules_of(conv, false));
                ASSERT_EQ(found.size(), 1u)
                    << layer.name << ", kind " << static_cast<int>(kind) << ", dtype " << dtype;
                EXPECT_LE(found[0].workspace, kWorkspaceLimit);
                EXPECT_FALSE(has_note(found[0], CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));
                EXPECT_FALSE(has_note(found[0], CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION));
                const bool on_tensor_cores = has_note(found[0], CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
                if (dtype != YOKE_F32 && layer.c < 64) continue;  // few channels: either is right
                EXPECT_EQ(on_tensor_cores, dtype != YOKE_F32)
                    << layer.name << ", kind " << static_cast<int>(kind);
            }
}

// A file keeps a plan's engine and knobs.
TEST_P(Convolutions, AreRemadeFromWinners)
{
    const Conv conv = conv_of(kLayers[0], ConvKind::kForward, YOKE_F16);
    const EngineRules rules = rules_of(conv, false);
    Graph graph(*cudnn_calls(), target());
    ASSERT_TRUE(build_conv(graph, conv, kAligned)) << graph.steps.failure().said;
    CudnnPlan found[4];
    const int count = find_plans(graph, rules, 4, found);
    ASSERT_GT(count, 1);
    CudnnWinner first{};
    for (int i = 0; i < count; ++i) {
        CudnnWinner winner, again;
        CudnnPlan remade;
        ASSERT_TRUE(read_winner(*cudnn_calls(), found[i], winner)) << i;
        ASSERT_TRUE(remake_plan(graph, rules, winner, remade)) << i;
        ASSERT_TRUE(read_winner(*cudnn_calls(), remade, again)) << i;
        EXPECT_EQ(memcmp(&winner, &again, sizeof winner), 0) << i;
        EXPECT_EQ(remade.workspace, found[i].workspace) << i;
        if (i == 0) first = winner;
        EXPECT_TRUE(i == 0 || memcmp(&winner, &first, sizeof winner) != 0) << i;
    }
    first.engine = 999999;
    EXPECT_FALSE(remake_plan(graph, rules, first, found[0]));
    first.count = -1;
    EXPECT_FALSE(remake_plan(graph, rules, first, found[0]));
}

// Forward by an addition behind the product, the gradient by data by adding to what is there.
TEST_P(Convolutions, AddABiasInTheSamePass)
{
    for (const Layer &layer : kLayers)
        for (const ConvKind kind : {ConvKind::kForward, ConvKind::kData})
            for (const yoke_dtype dtype : kDtypes) {
                if (dtype == YOKE_BF16 && !has_bf16()) continue;
                if (dtype != YOKE_F32 && may_be_compiled(layer, kind)) continue;
                const Conv conv = conv_of(layer, kind, dtype);
                EXPECT_EQ(plans(conv, rules_of(conv, false), 1, {{16, 16, 16, 16}, true}).size(),
                          1u)
                    << layer.name << ", kind " << static_cast<int>(kind) << ", dtype " << dtype;
            }
}

TEST_P(Convolutions, HaveEnginesThatAreCompiled)
{
    if (GetParam().arch != 90) return;  // a single card is enough
    const Conv conv =
        conv_of({"", 32, 128, 28, 128, 3, 1, 1, 1, 128}, ConvKind::kForward, YOKE_F16);
    EXPECT_EQ(plans(conv, rules_of(conv, false)).size(), 1u);
}

TEST_P(Convolutions, UseTensorCoresForFloatsWhereTf32IsAllowed)
{
    const Conv conv = conv_of(kLayers[0], ConvKind::kForward, YOKE_F32);
    const auto found = plans(conv, rules_of(conv, true));
    ASSERT_EQ(found.size(), 1u);
    // Before 8.0 there is none.
    EXPECT_EQ(has_note(found[0], CUDNN_NUMERICAL_NOTE_TENSOR_CORE), has_bf16());
}

TEST_P(Convolutions, KeepWithinTheirWorkspace)
{
    const Conv conv = conv_of(kLayers[0], ConvKind::kForward, YOKE_F32);
    EngineRules rules = rules_of(conv, false);
    uint64_t most = 0;
    for (const CudnnPlan &plan : plans(conv, rules, 16)) most = std::max(most, plan.workspace);
    ASSERT_GT(most, 0u);
    rules.workspace_limit = most - 1;
    const auto smaller = plans(conv, rules, 16);
    EXPECT_GE(smaller.size(), 1u);
    for (const CudnnPlan &plan : smaller) EXPECT_LT(plan.workspace, most);
}

TEST_P(Convolutions, HaveSumsInOrderInTheirFirstPlan)
{
    for (const Layer &layer : kLayers)
        for (const ConvKind kind : {ConvKind::kForward, ConvKind::kData, ConvKind::kWeight}) {
            const Conv conv = conv_of(layer, kind, YOKE_F16);
            if (may_be_compiled(layer, kind)) continue;
            EngineRules rules = rules_of(conv, false);
            rules.deterministic = false;
            const auto found = plans(conv, rules);
            ASSERT_EQ(found.size(), 1u) << layer.name;
            EXPECT_FALSE(has_note(found[0], CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC))
                << layer.name << ", kind " << static_cast<int>(kind);
        }
}

TEST_P(Convolutions, AreAskedForWithoutDeterminismToo)
{
    const Conv conv = conv_of(kLayers[0], ConvKind::kWeight, YOKE_F32);
    EngineRules rules = rules_of(conv, true);
    const auto is_luck = [](const CudnnPlan &plan) {
        return has_note(plan, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
    };
    for (const CudnnPlan &plan : plans(conv, rules, 32)) EXPECT_FALSE(is_luck(plan));
    rules.deterministic = false;
    const auto any = plans(conv, rules, 32);
    EXPECT_TRUE(std::any_of(any.begin(), any.end(), is_luck));
}

TEST_P(Convolutions, OfSizesThatDoNotFitAreRefused)
{
    Conv conv = conv_of(kLayers[0], ConvKind::kForward, YOKE_F32);
    conv.oh++;
    Graph graph(*cudnn_calls(), target());
    EXPECT_FALSE(build_conv(graph, conv, kAligned));
    EXPECT_STREQ(graph.steps.failure().call, "cudnnBackendFinalize");
    EXPECT_NE(std::string(graph.steps.failure().said), "");
    CudnnPlan plan;
    CudnnFailure why;
    EXPECT_EQ(find_plans(graph, rules_of(conv, false), 1, &plan, &why), 0);
    EXPECT_EQ(why.status, graph.steps.failure().status);
}

YOKE_ON_EACH_CARD(Convolutions);

TEST(Notes, AreHeldToTheRules)
{
    constexpr cudnnBackendNumericalNote_t kTensorCore[] = {CUDNN_NUMERICAL_NOTE_WINOGRAD,
                                                           CUDNN_NUMERICAL_NOTE_TENSOR_CORE},
                                          kNarrowed[] = {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS},
                                          kLuck[] = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC},
                                          kReduced[] = {
                                              CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION};
    const EngineRules strict = {true, false, true, 0}, tf32 = {true, true, true, 0},
                      halves = {false, false, true, 0}, lax = {true, true, false, 0};
    EXPECT_TRUE(notes_allow(strict, nullptr, 0));
    EXPECT_TRUE(notes_allow(strict, kTensorCore, 1));
    EXPECT_FALSE(notes_allow(strict, kTensorCore, 2));
    EXPECT_FALSE(notes_allow(strict, kNarrowed, 1));
    EXPECT_TRUE(notes_allow(tf32, kTensorCore, 2));
    EXPECT_TRUE(notes_allow(tf32, kNarrowed, 1));
    EXPECT_TRUE(notes_allow(halves, kTensorCore, 2));
    EXPECT_FALSE(notes_allow(tf32, kLuck, 1));
    EXPECT_TRUE(notes_allow(lax, kLuck, 1));
    for (const EngineRules &rules : {strict, tf32, halves, lax})
        EXPECT_FALSE(notes_allow(rules, kReduced, 1));
}

// All libraries opened by cuDNN are in a single folder.
TEST(Cudnn, IsOfOneCopy)
{
    EXPECT_EQ(mapped_folders().size(), *cudnn_why_unavailable() ? 0u : 1u);
}

}  // namespace yoke::cuda
