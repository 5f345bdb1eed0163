// Attention and its gradient as graphs of cuDNN: separate products, softmax and mask. cuDNN's attention engines
// detect this pattern.
//
// Contract
//  * f16 and bf16, computed in f32; widths in multiples of 8. If `causal`, a position sees only positions up to its
//    own.
//  * Key and value may have fewer heads than query: each is shared by an equal number of neighbouring heads.
//  * The statistics are each row's log-sum-exp, f32, [batch, heads, queries], dense. So is the row sum of the
//    gradient.
//  * The gradient has two forms. The first writes the gradients of scores, 2 bytes each, and sums in a fixed order.
//    The second adds to an accumulator of f32, [batch, heads, queries, width], dense, in any order. cuDNN's notes do
//    not distinguish the forms.
#pragma once

#include "kernels/cuda/host/cudnn/graph.h"

namespace yoke::cuda {

struct AttentionName {
    enum : int64_t {
        kQuery = 1,
        kKey,
        kValue,
        kResult,
        kStatistics,
        kScale,   // a number
        kMasked,  // a number: kMaskedScore
        kGradient,
        kQueryGradient,
        kKeyGradient,
        kValueGradient,
        kRowSum,
        kAccumulator,
        kOne,  // a number: 1
        kBias
    };
};

// Value of a forbidden score. Versions before 9.10 do not support infinity. Every row has an allowed score, so the
// results are the same.
constexpr float kMaskedScore = -3.4028234663852886e38f;

struct HeadStrides {
    int64_t batch, head, row;  // in elements; along a row, elements are neighbours
};

struct AttentionShape {
    yoke_dtype dtype;
    int64_t batch, heads, key_heads, queries, keys, width, value_width;
    bool causal;
    int64_t statistics_alignment;  // in bytes
    HeadStrides query, key, value, result;
    HeadStrides gradient, query_gradient, key_gradient, value_gradient;  // for the gradient
    // Numbers added to the scaled scores, of the same dtype; keys are neighbours. A stride of 0: the same for all.
    bool has_bias = false;
    HeadStrides bias = {};
    int64_t bias_alignment = 0;  // in bytes
};

// Builds the graph of attention and finalizes it. Returns false if a call of cuDNN fails; the graph's steps keep the
// failure.
bool build_attention(Graph &graph, const AttentionShape &shape);
// Builds the graph of attention's gradient in the same way. `deterministic` chooses the first form above.
bool build_attention_backward(Graph &graph, const AttentionShape &shape, bool deterministic);

}  // namespace yoke::cuda
