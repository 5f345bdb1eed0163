// Heads of an attention launch in cuDNN's form: a batch of heads, of which some share a head of keys.
#pragma once

#include "kernels/cuda/host/cudnn/attention_bias.h"
#include "kernels/cuda/host/cudnn/attention_fit.h"
#include "kernels/cuda/host/cudnn/attention_graph.h"

namespace yoke::cuda {

// Tensor of the graphs, with its place among a launch's operands, forward and backward. -1: no operand.
struct AttentionPlace {
    int64_t name;
    HeadStrides AttentionShape::*strides;
    int forward, backward;
    bool is_of_keys, is_of_values;
};

constexpr AttentionPlace kAttentionPlaces[] = {
    {AttentionName::kQuery, &AttentionShape::query, 0, 1, false, false},
    {AttentionName::kKey, &AttentionShape::key, 1, 2, true, false},
    {AttentionName::kValue, &AttentionShape::value, 2, 3, true, true},
    {AttentionName::kResult, &AttentionShape::result, 4, 5, false, true},
    {AttentionName::kGradient, &AttentionShape::gradient, -1, 0, false, true},
    {AttentionName::kQueryGradient, &AttentionShape::query_gradient, -1, 7, false, false},
    {AttentionName::kKeyGradient, &AttentionShape::key_gradient, -1, 8, true, false},
    {AttentionName::kValueGradient, &AttentionShape::value_gradient, -1, 9, true, true},
};
constexpr int kMostAttentionPlaces = 8;

struct AttentionHeads {
    bool backward, deterministic;
    bool copies_keys;         // gradient: keys must be dense, copied for each head
    alignas(16) float scale;  // as the graph promises of its numbers
    AttentionShape shape;
    char *data[kMostAttentionPlaces];  // address of each place
    char *statistics;
    AttentionBias mask;           // if shape.has_bias
    char *bias;                   // null until the mask is copied, if it must be copied
    int64_t bias_offset;          // of a part, in elements
    void *row_sum, *accumulator;  // for the gradient of a part

    // Reads the launch. Returns why it does not fit cuDNN, or kFits.
    AttentionFit read(const yoke_launch *launch);

    int count() const { return backward ? kMostAttentionPlaces : 4; }
    uint64_t rows() const
    {
        return static_cast<uint64_t>(shape.batch * shape.heads * shape.queries);
    }
    uint64_t accumulator_bytes() const
    {
        return backward && !deterministic ? rows() * static_cast<uint64_t>(shape.width) * 4 : 0;
    }
    const void *bias_address() const
    {
        return reinterpret_cast<const void *>(reinterpret_cast<uintptr_t>(bias) +
                                              static_cast<uintptr_t>(bias_offset) * 2);
    }
    // Returns how many elements the longest tensor spans, from its first to its last.
    int64_t reach() const;
    // Returns `heads` heads of keys from `head` on, in `batches` batches from `batch` on, with the heads of query
    // that share them.
    AttentionHeads part(int64_t batch, int64_t batches, int64_t head, int64_t heads) const;
};

// Writes the strides, in elements, of a dense row-major tensor with the shape of `like`.
void dense_strides(const yoke_operand &like, int64_t *strides);

}  // namespace yoke::cuda
