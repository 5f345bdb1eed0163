// visible.h: devices left by CUDA_VISIBLE_DEVICES, in order.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace yoke::fake {

// Card or instance as an entry of the variable.
struct Choice {
    std::string uuid;
    std::vector<std::string> instances;  // UUIDs, if the card is partitioned
    bool partitioned = false;
};

// A card and the number of an instance, -1 for the whole card.
struct Chosen {
    int card, instance;
};

// `cards` are in the order of the entries' numbers.
std::vector<Chosen> visible(const std::vector<Choice> &cards,
                            const std::optional<std::string> &variable);

}  // namespace yoke::fake
