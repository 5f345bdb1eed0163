// facts.h: what is known of a machine as a whole, in words: the keys of yoke_inventory_fact.
#pragma once

#include "core/machine/inventory.h"

#include <span>
#include <string>

namespace yoke {

struct NamedFact {
    const char *key;
    std::string (*text)(const Machine &machine);  // "" where it is not known
};

// All of them, in the order in which messages name them.
std::span<const NamedFact> named_facts() noexcept;

}  // namespace yoke
