// tree_text.h: a tree as text in the metadata of a file: JSON from which every value returns unchanged.
//
// Strings, bools, whole numbers, finite floats (always with a point or an exponent), lists and dicts of strings are
// plain JSON. All other values are an object of one key:
//
//   {"$tensor": NAME}             a tensor of the file; two places with the same name share a tensor
//   {"$float": "inf" | "-inf" | "nan" | "0x7ff8…"}    a float that JSON cannot write; other NaNs as bits
//   {"$tuple": [VALUE, …]}        a list that was a tuple in Python
//   {"$dict": [[KEY, VALUE], …]}  a dict with a key that is a number or begins with "$"
#pragma once

#include "core/state/safetensors.h"
#include "core/state/tree.h"

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace yoke {

// Number of this form of trees. A reader refuses larger numbers.
inline constexpr int kTreeFormat = 1;

struct TreeText {
    std::string json;
    // Tensors by their names in json: their paths, with "." between the parts.
    std::vector<NamedTensor> tensors;
    // dict of tensors under plain names: the file needs no json
    bool is_flat = false;
};

// Returns a tree as text, with its tensors. Raises YOKE_E_VALUE or YOKE_E_TYPE, with the path, if a value cannot be
// written.
TreeText tree_text(const State &root, const char *call);

// Returns the tree in a text of this form. `tensor` returns the tensor of a name, or an absent tensor. Raises
// YOKE_E_CHECKPOINT, naming `path`, for other texts and for missing tensors.
Ref<State> read_tree(std::string_view json, const std::function<Tensor(std::string_view)> &tensor,
                     const char *path);

// Raises YOKE_E_CHECKPOINT for a NUL, because the parser takes a NUL for the end of the text. Raises this error also
// for a number of more than 1000 digits: its error message would be several times longer than the text. `what` names
// the text in messages, and `before` counts the bytes of the file before the text.
void check_json_text(std::string_view json, const char *what, size_t before, const char *path);

// Returns a double in as few digits as restore it, never in the form of a whole number; "nan", "inf".
std::string shown_float(double value);

// Appends a JSON string; UTF-8 characters stay unescaped.
void put_json_text(std::string &json, std::string_view text);

}  // namespace yoke
