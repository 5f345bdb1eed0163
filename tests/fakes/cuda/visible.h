// visible.h: which devices CUDA_VISIBLE_DEVICES leaves, in which order.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace yoke::fake {

// What can be named: a card, or an instance of one.
struct Choice {
    std::string uuid;
    std::vector<std::string> instances;  // their UUIDs, when the card is partitioned
    bool partitioned = false;
};

// A card and which instance of it, -1 for the whole.
struct Chosen {
    int card, instance;
};

// `cards` stand in the order that numbers count.
std::vector<Chosen> visible(const std::vector<Choice> &cards,
                            const std::optional<std::string> &variable);

}  // namespace yoke::fake
