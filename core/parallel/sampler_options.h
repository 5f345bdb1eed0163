// sampler_options.h: how a sampler deals out examples, and how far it is.
#pragma once

#include <cstdint>
#include <vector>

namespace yoke {

struct SamplerOptions {
    int64_t count = 0;  // of examples
    int32_t rank = 0, size = 1;
    bool is_shuffled = true;
    int64_t seed = 0;
    // So that all ranks get equally many, the rest is left out, or the order goes on with its beginning; without either
    // each example goes to exactly one rank.
    bool drops_last = false, is_padded = true;
    std::vector<double> shares;  // of each rank, 1 in all; empty: equal ones
};

struct SamplerState {
    int64_t epoch = 0;
    int64_t consumed = 0;  // by all ranks, of the epoch's order
};

}  // namespace yoke
