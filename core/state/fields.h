// fields.h: reads the named fields of a saved state. If a field is missing or of another kind, the error gives the
// place and the expected kind.
#pragma once

#include "core/state/tree.h"

#include <initializer_list>
#include <string>
#include <string_view>

namespace yoke {

// Name of the call in all messages.
inline constexpr const char *kLoadCall = "load_state_dict";

// Returns a node's text for messages: "3.0", "'text'", "a float32 tensor of shape [2]", "a list".
std::string shown(const State &node);

// A dict in a state, at a place such as "param_groups[0]".
class Fields {
public:
    // Reads a dict. Raises YOKE_E_TYPE if the node is no dict, and YOKE_E_VALUE if a key of `keys` is missing. `hint`
    // ends the message.
    Fields(const State &node, std::string place, std::initializer_list<std::string_view> keys = {},
           const char *hint = "");

    const StateDict &dict() const { return dict_; }
    const std::string &place() const { return place_; }
    // Returns the value of a key, or null if the key is missing. at() raises YOKE_E_VALUE instead.
    const State *find(std::string_view key) const { return dict_.find(std::string(key)); }
    const State &at(std::string_view key) const;

    // Returns the value of a key as a number; a whole number is also a number. truth() returns a bool. Raises
    // YOKE_E_VALUE if the key is missing, and YOKE_E_TYPE for a value of another kind.
    double number(std::string_view key) const;
    bool truth(std::string_view key) const;
    // Returns the whole number of a key. Raises YOKE_E_VALUE if the number is below `least`, else as number().
    int64_t whole(std::string_view key, int64_t least) const;
    // Returns the list of a key; raises as number(). An empty dict also counts as an empty list, because Lua has a
    // single empty table.
    const StateList &list(std::string_view key) const;
    std::string place_of(std::string_view key) const;

private:
    const StateDict &dict_;
    std::string place_;
};

// Returns the number of a node; tensor_of() returns its tensor. Raises YOKE_E_TYPE for another kind; `place` names
// the node in the error.
double number_of(const State &node, const std::string &place);
const Tensor &tensor_of(const State &node, const std::string &place);

// Raises YOKE_E_TYPE: the node at `place` is not the wanted kind.
[[noreturn]] void refuse_kind(const State &node, const std::string &place, const char *wanted);

}  // namespace yoke
