// safetensors.h: the header of a safetensors file: names and positions of its tensors.
//
//   bytes 0-7   the length of the header, little-endian
//   then        the header, JSON: {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …} with an
//               optional "__metadata__" of strings, perhaps with trailing spaces
//   then        the data, to the end of the file; offsets count from the data's beginning, and leave no gap
//
// Every rule of the format's own reader holds here, and no key may come twice.
#pragma once

#include "core/tensor/tensor.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace yoke {

// Dtype of the format, some of them known to Yoke. The list has the alignment order of the files, the largest first.
struct StoredDtype {
    std::string_view name;
    uint32_t bits;
    yoke_dtype dtype;  // YOKE_NONE: unknown to Yoke
};
// Returns the format's dtype of this name, or for this dtype of Yoke. Returns null if the format has no such dtype.
const StoredDtype *stored_dtype(std::string_view name);
const StoredDtype *stored_dtype(yoke_dtype dtype);

inline constexpr uint64_t kMostHeader =
    100'000'000;  // bytes of a header, as in the format's own reader

using NamedTensor = std::pair<std::string, Tensor>;

// Returns the header of a file of these tensors, padded so that data begins at a multiple of 64 bytes. Sorts the
// tensors into the order of their data: by dtype, the largest alignment first, then by name.
std::string make_stored_header(std::vector<const NamedTensor *> &tensors,
                               const std::vector<std::pair<std::string, std::string>> &metadata);

}  // namespace yoke
