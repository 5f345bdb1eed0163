// The op table against itself: every line must agree with its family's code.
#include "core/ops/op_def.h"

#include "core/autograd/node.h"
#include "core/ops/ops.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace yoke {

namespace {

// Returns the bits of the tensor arguments, lists among them.
uint32_t tensor_bits(const OpDef &op)
{
    uint32_t bits = 0;
    for (int i = 0; i < op.arg_count; ++i)
        if (is_tensor_type(op.args[i].type)) bits |= 1u << i;
    return bits;
}

bool differentiable(const OpDef &op)
{
    for (int k = 0; k < op.result_count; ++k)
        if (op.results[k] == ResultKind::kTensor) return true;
    return false;
}

}  // namespace

TEST(OpTable, AnOpIsComposedOrRunsAnotherInPlaceOrHasAShapeRule)
{
    for (const OpDef &op : kOps) {
        const bool composed = op.compose || op.compose_list;
        EXPECT_EQ(composed, op.cost == Cost::kComposed) << op.name;
        EXPECT_EQ(op.in_place_of >= 0, op.cost == Cost::kInplace) << op.name;
        EXPECT_EQ(op.infer != nullptr, !composed && op.in_place_of < 0) << op.name;
        if (composed || op.in_place_of >= 0) {
            EXPECT_EQ(op.vjp, nullptr) << op.name << ": the ops that make it up have their own";
        } else if (differentiable(op)) {
            EXPECT_NE(op.vjp, nullptr) << op.name;
        }
    }
}

TEST(OpTable, ArgumentsAndResultsStayWithinTheirBounds)
{
    for (const OpDef &op : kOps) {
        EXPECT_LE(op.arg_count, kMaxArgs) << op.name;
        EXPECT_LE(op.result_count, kMaxResults) << op.name;
        EXPECT_LE(op.returned_count, op.result_count) << op.name;
        for (int k = 0; k < op.result_count; ++k)
            EXPECT_EQ(op.results[k] == ResultKind::kSaved, k >= op.returned_count)
                << op.name << ": what is kept stands behind what is returned";
        int required = 0;
        for (int i = 0; i < op.arg_count; ++i) {
            ASSERT_NE(op.args[i].name, nullptr) << op.name;
            if (!op.args[i].has_default) required = i + 1;
        }
        for (int i = 0; i < required; ++i)
            EXPECT_FALSE(op.args[i].has_default)
                << op.name << ": '" << op.args[i].name << "' has a default before one without";
    }
}

TEST(OpTable, AnInPlaceOpReturnsAnArgumentThatItWrites)
{
    for (const OpDef &op : kOps) {
        if (op.mut_result < 0) continue;
        ASSERT_LT(op.mut_result, op.arg_count) << op.name;
        EXPECT_EQ(op.args[op.mut_result].type, ArgType::kMut) << op.name;
        EXPECT_EQ(op.result_count, 0) << op.name;
    }
}

TEST(OpTable, WhatAnOpSavesAreItsTensorsAndResults)
{
    for (const OpDef &op : kOps) {
        const uint32_t results = ((1u << op.result_count) - 1) << 16;
        for (int i = 0; i < op.arg_count; ++i) {
            EXPECT_EQ(op.saves[i] & ~(tensor_bits(op) | results), 0u)
                << op.name << ", for '" << op.args[i].name << "'";
            if (!(tensor_bits(op) >> i & 1)) {
                EXPECT_EQ(op.saves[i], 0u) << op.name << ": '" << op.args[i].name
                                           << "' is no tensor and wants no gradient";
            }
        }
        if (!op.vjp) {
            for (const uint32_t saved : op.saves) EXPECT_EQ(saved, 0u) << op.name;
        }
    }
}

TEST(OpTable, WhatDrawsOrGoesByIndexSaysSo)
{
    // Without the role an op would draw equal numbers in each replay, or read its own fresh output.
    const auto bearers = [](ArgRole role) {
        std::set<std::string> names;
        for (const OpDef &op : kOps)
            for (int i = 0; i < op.arg_count; ++i)
                if (op.args[i].role == role) names.insert(op.name);
        return names;
    };
    EXPECT_EQ(bearers(ArgRole::kRandomOffset),
              (std::set<std::string>{"_attention", "_attention_backward", "_bernoulli",
                                     "_bernoulli_fill", "_dropout", "_exponential", "_multinomial",
                                     "_normal", "_race", "_randint", "_randperm", "_uniform"}));
    EXPECT_EQ(bearers(ArgRole::kIndex), (std::set<std::string>{"_embedding_backward",
                                                               "_index",
                                                               "_scatter",
                                                               "_scatter_",
                                                               "embedding",
                                                               "gather",
                                                               "index_add",
                                                               "index_add_",
                                                               "index_copy",
                                                               "index_copy_",
                                                               "index_fill",
                                                               "index_fill_",
                                                               "index_put",
                                                               "index_put_",
                                                               "index_select",
                                                               "scatter",
                                                               "scatter_",
                                                               "scatter_add",
                                                               "scatter_add_",
                                                               "take_along_dim"}));
}

TEST(OpTable, NamesAreUniqueAndInternalOnesBeginWithALine)
{
    std::set<std::string> names;
    bool internal_seen = false;
    for (const OpDef &op : kOps) {
        EXPECT_TRUE(names.insert(op.name).second) << op.name;
        internal_seen |= op.name[0] == '_';
        EXPECT_EQ(internal_seen, op.name[0] == '_') << "public ops come first: " << op.name;
        EXPECT_EQ(std::string(op.signature).rfind(std::string(op.name) + "(", 0), 0u)
            << op.signature;
        EXPECT_TRUE(std::string(op.doc).ends_with('.')) << op.name << ": " << op.doc;
    }
}

TEST(OpTable, AViewLaunchesNothingAndHasNoKernel)
{
    static constexpr bool has_kernel[] = {
#define YES(op) true,
#define NO(op) false,
        YOKE_FOR_EACH_OP(YES, NO)
#undef YES
#undef NO
    };
    for (int i = 0; i < YOKE_OP_COUNT; ++i)
        EXPECT_EQ(has_kernel[i], kOps[i].cost == Cost::kBytes || kOps[i].cost == Cost::kGemm)
            << kOps[i].name;
}

}  // namespace yoke
