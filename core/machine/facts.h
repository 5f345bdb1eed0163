// facts.h: what is known of a machine as a whole, in words: the keys of yoke_inventory_fact.
#pragma once

#include "core/machine/inventory.h"

#include <span>
#include <string>

namespace yoke {

struct NamedFact {
    const char *key;
    std::string (*text)(const Machine &machine);  // "" if unknown
};

// Returns all facts, in the order of messages.
std::span<const NamedFact> named_facts() noexcept;

}  // namespace yoke
