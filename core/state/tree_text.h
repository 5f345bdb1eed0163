// tree_text.h: a tree as it stands in the metadata of a file: JSON in which all comes back as it was.
//
// Strings, bools, whole numbers, finite floats (always with a point or an exponent), lists and dicts of strings are
// what JSON has for them. The rest is an object of one key:
//
//   {"$tensor": NAME}             a tensor of the file; one that two places name is one
//   {"$float": "inf" | "-inf" | "nan" | "0x7ff8…"}    what no number of JSON is; of other NaNs the bits
//   {"$tuple": [VALUE, …]}        a list that Python had as a tuple
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

// Of this form of trees; a larger one is refused by its number.
inline constexpr int kTreeFormat = 1;

struct TreeText {
    std::string json;
    // By the names that json has them under: their paths, with "." between the parts.
    std::vector<NamedTensor> tensors;
    // A dict of tensors under names of their own: the file needs no json.
    bool is_flat = false;
};

// Raises YOKE_E_VALUE or YOKE_E_TYPE with the path of what cannot be written.
TreeText tree_text(const State &root, const char *call);

// Raises YOKE_E_CHECKPOINT, naming `path`, for what is no such text. `tensor` gives the tensor of a name, or null.
Ref<State> read_tree(std::string_view json, const std::function<Tensor(std::string_view)> &tensor,
                     const char *path);

// What the parser would take for the end of the text, a NUL, and a number that it would tell of at several times the
// text's length raise YOKE_E_CHECKPOINT. `what` is the text, with so many bytes of the file before.
void check_json_text(std::string_view json, const char *what, size_t before, const char *path);

// A double in as few digits as bring it back, and never one that reads as a whole number; "nan", "inf".
std::string shown_float(double value);

// As JSON: what UTF-8 needs no escape stays.
void put_json_text(std::string &json, std::string_view text);

}  // namespace yoke
