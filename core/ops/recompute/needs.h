// needs.h: the calls of a recording that make the values requested by backward.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace yoke {

class LoggedCall;
class Recording;
class Value;
struct Item;

// Calls that make all items with holders and without memory, and `wanted` (null: none).
struct Needs {
    Needs(const Recording &recording, const Item *wanted, bool as_if_nothing_held = false);

    std::vector<LoggedCall *> calls;                   // in order
    std::unordered_map<const Value *, uint32_t> uses;  // how often each is read on the way
    std::vector<Item *> sources;                       // held items that the calls read
};

}  // namespace yoke
