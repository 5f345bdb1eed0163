// sampler_options.h: options of a sampler, and its state.
#pragma once

#include <cstdint>
#include <vector>

namespace yoke {

struct SamplerOptions {
    int64_t count = 0;  // number of examples
    int32_t rank = 0, size = 1;
    bool is_shuffled = true;
    int64_t seed = 0;
    // Ways to give all ranks equally many examples: drops_last leaves out the rest, is_padded appends the order's
    // beginning. Without both, each example goes to exactly 1 rank.
    bool drops_last = false, is_padded = true;
    std::vector<double> shares;  // by rank, with the sum 1; empty: equal shares
};

struct SamplerState {
    int64_t epoch = 0;
    int64_t consumed = 0;  // by all ranks, of the epoch's order
};

}  // namespace yoke
