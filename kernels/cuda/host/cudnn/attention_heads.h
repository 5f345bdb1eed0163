// Heads of an attention launch in cuDNN's form: a batch of heads, of which some share a head of keys.
#pragma once

#include "kernels/cuda/host/cudnn/attention_graph.h"

namespace yoke::cuda {

// The tensors of both graphs: where they stand among a launch's operands, forward and backward.
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
    void *row_sum, *accumulator;  // for the gradient of a part

    // False where these are not cuDNN's.
    bool read(const yoke_launch *launch);

    int count() const { return backward ? kMostAttentionPlaces : 4; }
    uint64_t rows() const
    {
        return static_cast<uint64_t>(shape.batch * shape.heads * shape.queries);
    }
    uint64_t accumulator_bytes() const
    {
        return backward && !deterministic ? rows() * static_cast<uint64_t>(shape.width) * 4 : 0;
    }
    // The most elements from a tensor's first to its last.
    int64_t reach() const;
    // Returns the heads of keys from `head` on in the batches from `batch` on, and the heads that share them.
    AttentionHeads part(int64_t batch, int64_t batches, int64_t head, int64_t heads) const;
};

// Row-major.
void dense_strides(const yoke_operand &like, int64_t *strides);

}  // namespace yoke::cuda
