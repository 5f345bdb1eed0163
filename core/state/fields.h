// fields.h: what a saved state has under its names, for those who go on from it: what is missing, or of another kind,
// is an error that says the place and what belongs there.
#pragma once

#include "core/state/tree.h"

#include <initializer_list>
#include <string>
#include <string_view>

namespace yoke {

// The call in all their messages.
inline constexpr const char *kLoadCall = "load_state_dict";

// A node as messages say it: "3.0", "'text'", "a float32 tensor of shape [2]", "a list".
std::string shown(const State &node);

// A dict in a state, at a place such as "param_groups[0]".
class Fields {
public:
    // Raises YOKE_E_TYPE for what is no dict, and YOKE_E_VALUE where one of the keys is missing; `hint` goes behind.
    Fields(const State &node, std::string place, std::initializer_list<std::string_view> keys = {},
           const char *hint = "");

    const StateDict &dict() const { return dict_; }
    const std::string &place() const { return place_; }
    // Null where there is none.
    const State *find(std::string_view key) const { return dict_.find(std::string(key)); }
    const State &at(std::string_view key) const;

    // The value of a key; YOKE_E_TYPE for one of another kind. A whole number is also a number.
    double number(std::string_view key) const;
    bool truth(std::string_view key) const;
    // YOKE_E_VALUE below `least`.
    int64_t whole(std::string_view key, int64_t least) const;
    // An empty dict is an empty list too: Lua has one empty table.
    const StateList &list(std::string_view key) const;
    std::string place_of(std::string_view key) const;

private:
    const StateDict &dict_;
    std::string place_;
};

// A node that is to be a number; `place` says which.
double number_of(const State &node, const std::string &place);
const Tensor &tensor_of(const State &node, const std::string &place);

// What a state says of itself is wrong.
[[noreturn]] void refuse_kind(const State &node, const std::string &place, const char *wanted);

}  // namespace yoke
