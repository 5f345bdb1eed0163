// Attention and its gradient as graphs of cuDNN's: products, softmax and mask spelled out, which its attention engines
// know by their pattern.
//
// Contract
//  * f16 and bf16, computed in f32; widths in eights. A position sees those up to its own where `causal`.
//  * Heads of key and value may be fewer than those of query: each is shared by as many neighbours.
//  * The statistics are each row's log-sum-exp, f32, [batch, heads, queries], dense; so is the row sum of the gradient.
//  * Two spellings of the gradient: one writes the gradients of scores, 2 bytes each, and sums in a fixed order; one
//    adds to an accumulator of f32, [batch, heads, queries, width], dense, in an order that is not fixed. No note tells
//    them apart.
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
        kOne  // a number: 1
    };
};

// What a score that is not allowed becomes. Versions before 9.10 take no infinity; no row is without an allowed one, so
// that the results are the same.
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
};

// Whether cuDNN takes the finished graph; its steps tell why not.
bool build_attention(Graph &graph, const AttentionShape &shape);
bool build_attention_backward(Graph &graph, const AttentionShape &shape, bool deterministic);

}  // namespace yoke::cuda
