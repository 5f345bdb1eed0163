// Attention that cuDNN does not compute: one warning a kind, with its remedy, and the results of the own kernels.
#include "attention.h"
#include "attention_runs.h"

namespace yoke::test {

namespace {

// Runs a case twice on the own kernels, and returns what was logged.
std::string told(void *device, const AttentionCase &asked, int graphs = 0)
{
    const auto wanted = run_both<float>(device, asked);
    Module::logged() = "";
    for (int time = 0; time < 2; ++time) EXPECT_EQ(graphs_of(device, asked, &wanted), graphs);
    return Module::logged();
}

size_t lines_of(const std::string &text)
{
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

void expect_told(const std::string &text, size_t lines, std::initializer_list<const char *> parts)
{
    EXPECT_EQ(lines_of(text), lines) << text;
    for (const char *part : parts) EXPECT_NE(text.find(part), text.npos) << part << " in " << text;
}

constexpr const char *kNoTensorCores = "runs without tensor cores";

}  // namespace

TEST(AttentionLeaves, ForAWidthNotInEights)
{
    with_cudnn([](const Module &, void *device) {
        expect_told(told(device, {2, 3, 1, 5, 7, 12, 8}), 2,
                    {"Yoke's own kernels compute the attention of 1 x 6 x 5 x 12 over 6 x 7 x 8",
                     "multiples of 8; fill the rows up with zeros", kNoTensorCores,
                     "at most 128; fill the rows up"});
        EXPECT_EQ(told(device, {2, 3, 1, 5, 7, 8, 4}), "") << "the kinds have had their warnings";
    });
}

TEST(AttentionLeaves, ForRowsThatLieApart)
{
    with_cudnn([](const Module &, void *device) {
        AttentionCase c = {1, 3, 1, 5, 5, 8, 8, false, true};
        c.shift = 1;
        expect_told(told(device, c), 2, {"multiples of 16 bytes", "contiguous()", kNoTensorCores});
    });
}

TEST(AttentionLeaves, ForACardWithoutAnEngine)
{
    with_cudnn([](const Module &, void *device) {
        setenv("FAKE_CUDNN_ENGINES", "0", 1);
        expect_told(told(device, {2, 3, 1, 5, 7, 8, 16}), 1,
                    {"cuDNN has no engine for it on this card", "widths up to 128"});
        expect_told(told(device, {2, 3, 1, 5, 7, 256, 256}), 1, {kNoTensorCores, "at most 128"});
    });
}

TEST(AttentionLeaves, ForAGradientInOrderBeyondTheLimitOfItsWorkspace)
{
    with_cudnn([](const Module &, void *device) {
        AttentionCase c = {3, 4, 1, 5, 7, 8, 8, true};
        c.workspace_limit = 69;  // a head's gradients of scores need 70 bytes
        expect_told(told(device, c, 1), 1,
                    {"compute the gradient of attention of 3 x 4", "a workspace of 70 bytes",
                     "the limit is 69", "set yoke.backends.cudnn.workspace_limit to 70"});
        c.flags = YOKE_LAUNCH_CUDNN_NONDETERMINISTIC;
        c.workspace_limit = 0;
        EXPECT_EQ(lines_of(told(device, c, 1 + 12)), 0u) << "in any order it needs none";
    });
}

TEST(AttentionLeaves, ForAMaskedGradientWithHalfATileOfKeys)
{
    with_cudnn([](const Module &, void *device) {
        AttentionCase c = {1, 1, 1, 3, 192, 8, 8};
        c.mask = {1, 192};
        expect_told(told(device, c, 1), 1, {"may be NaN", "add keys that the mask forbids"});
        c.mask = {};
        EXPECT_EQ(told(device, c, 2), "") << "without a mask";
        c.keys = 128;
        c.mask = {1, 128};
        EXPECT_EQ(told(device, c, 2), "");
    });
}

// Dropout takes the own kernels on purpose: every device draws the same numbers.
TEST(AttentionLeaves, ForDropoutWithoutAWordAboutCudnn)
{
    with_cudnn([](const Module &, void *device) {
        AttentionCase c = {2, 3, 1, 5, 7, 8, 16};
        c.dropout = 0.5;
        EXPECT_EQ(told(device, c).find("cuDNN"), std::string::npos);
    });
}

TEST(AttentionLeaves, ForOwnKernelsWithoutTensorCoresIfCudnnIsOff)
{
    with_cudnn([](const Module &, void *device) {
        AttentionCase c = {2, 3, 1, 5, 7, 136, 136};
        c.flags = YOKE_LAUNCH_CUDNN_OFF;
        expect_told(told(device, c), 1,
                    {kNoTensorCores, "set yoke.backends.cudnn.enabled to true"});
    });
}

TEST(AttentionLeaves, WithARemedyThatServesIfCudnnIsOff)
{
    AttentionCase odd = {2, 3, 1, 5, 7, 12, 12}, dropped = {2, 3, 1, 5, 7, 136, 136};
    dropped.dropout = 0.5;
    for (AttentionCase c : {odd, dropped})
        with_cudnn([&](const Module &, void *device) {
            c.flags = YOKE_LAUNCH_CUDNN_OFF;
            expect_told(told(device, c), 1, {kNoTensorCores, "at most 128; fill the rows up"});
        });
}

}  // namespace yoke::test
