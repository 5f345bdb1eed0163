// tree.h: the state of a run as a tree of plain values and tensors. Saves and languages exchange this tree.
//
// A node is empty, a bool, a whole number, a float, a string (UTF-8), a tensor, a list, or a dict. The keys of a dict
// are strings or whole numbers, in order. Lists and dicts hold references to nodes, so the same node may have two
// paths. A node never lies within itself.
//
// A path names a node below another: parts with "/" between them, "" the node itself. In a list, a part is a place,
// counted from 0. In a dict, a part is a string, or in digits the whole number if there is such a key. "~1" is a "/"
// within a part and "~0" a "~", as in RFC 6901.
#pragma once

#include "core/tensor/tensor.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

namespace yoke {

class State;

using StateKey = std::variant<int64_t, std::string>;

struct StateList {
    std::vector<Ref<State>> items;
    bool is_tuple = false;  // Python has tuples besides lists
};

class StateDict {
public:
    struct Entry {
        StateKey key;
        Ref<State> value;
    };
    const std::vector<Entry> &entries() const { return entries_; }
    // Returns the value of a key, or null if the key is missing.
    State *find(const StateKey &key) const;
    // Adds the value at the end, or replaces the value of the same key.
    void put(StateKey key, Ref<State> value);

private:
    std::vector<Entry> entries_;
    std::unordered_map<StateKey, size_t> places_;
};

// In the order of the values below.
enum class StateKind : int32_t { kNone, kBool, kInt, kFloat, kString, kTensor, kList, kDict };

class State final : public RefCounted {
public:
    using Value = std::variant<std::monostate, bool, int64_t, double, std::string, Tensor,
                               StateList, StateDict>;

    static Ref<State> make(Value value = {});

    StateKind kind() const { return static_cast<StateKind>(value_.index()); }
    const Value &value() const { return value_; }
    template <class T>
    const T *get_if() const
    {
        return std::get_if<T>(&value_);
    }
    void assign(Value value);

    // Adds to a list, or to a dict. Raises YOKE_E_VALUE for a value within which this node lies, or that is deeper than
    // kDeepest, and YOKE_E_TYPE for a node of another kind.
    void append(Ref<State> value, const char *call);
    void put(StateKey key, Ref<State> value, const char *call);

    // Returns the node at a path, or null if there is none. Raises YOKE_E_VALUE for an invalid path.
    State *find(std::string_view path, const char *call);
    // Returns the node at a path. If there is none, raises YOKE_E_VALUE with the nearest key.
    State &at(std::string_view path, const char *call);
    // Sets the node at a path. Missing dicts on the way are made, and this node becomes a dict if it is empty. In a
    // list, the place after the last adds an item. Raises the errors of append() and put().
    void set(std::string_view path, Ref<State> value, const char *call);

    static constexpr int kDeepest = 64;

private:
    explicit State(Value value);
    ~State() override;
    void destroy() noexcept override;
    void check_child(const State &child, const char *call) const;
    State *child(std::string_view part) const;
    void set_child(const std::string &part, Ref<State> value, const char *call);
    [[noreturn]] void fail_missing(std::string_view path, const std::string &part,
                                   const char *call) const;

    Value value_;
};

// Returns a kind for messages: "a list", "a float".
const char *kind_text(StateKind kind);

// Returns a key as written in a path.
std::string path_part(const StateKey &key);
// Returns the path of a part: "outer/part", or "part" below the root.
std::string path_below(const std::string &outer, std::string_view part);

// Returns whether the bytes are valid UTF-8.
bool is_utf8(std::string_view text);

}  // namespace yoke
