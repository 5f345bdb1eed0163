// safetensors.h: the header of a safetensors file: what its tensors are called and where they lie.
//
//   bytes 0-7   the length of the header, little-endian
//   then        the header, JSON: {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …} with an
//               optional "__metadata__" of strings, perhaps with spaces behind
//   then        the data, to the end of the file; offsets count from its beginning, and leave no gap
//
// Every rule of the format's own reader holds here, and no key may come twice.
#pragma once

#include "core/base/dtype.h"
#include "core/base/shape.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace yoke {

// Of the format, of which Yoke has some: in the order of alignment that its files keep to, the largest first.
struct StoredDtype {
    std::string_view name;
    uint32_t bits;
    yoke_dtype dtype;  // YOKE_NONE: none of Yoke's
};
// Null where the format has none.
const StoredDtype *stored_dtype(std::string_view name);
const StoredDtype *stored_dtype(yoke_dtype dtype);

// Names are anybody's: what is told of one is short, and one line.
std::string shown_name(std::string_view name);

// What a file holds, in a few large blocks: a header of many small tensors takes less than eight times its length.
class StoredTensors {
public:
    struct Tensor {
        uint32_t name, name_length;  // in texts
        uint32_t shape, ndim;        // in sizes
        uint64_t begin, end;         // in the data
        const StoredDtype *dtype;
    };

    // Of a header of a file of so many bytes. Raises YOKE_E_CHECKPOINT with path, rule, tensor and offset.
    static StoredTensors read(std::string_view header, uint64_t file_bytes, const char *path);

    // In the order of their data.
    const std::vector<Tensor> &tensors() const { return tensors_; }
    std::string_view name(const Tensor &tensor) const
    {
        return text(tensor.name, tensor.name_length);
    }
    IntList shape(const Tensor &tensor) const
    {
        return {sizes_.data() + tensor.shape, tensor.ndim};
    }
    // In the order of the header.
    size_t metadata_count() const { return metadata_.size(); }
    std::pair<std::string_view, std::string_view> metadata(size_t i) const;

    static constexpr uint64_t kMostHeader = 100'000'000;  // bytes, as in the format's own reader

private:
    struct Pair {
        uint32_t key, key_length, value, value_length;
    };
    class Reader;

    std::string_view text(uint32_t begin, uint32_t length) const
    {
        return std::string_view(texts_).substr(begin, length);
    }
    [[noreturn]] void refuse(const Tensor &tensor, const std::string &rule, const char *path) const;
    void check_names(const char *path) const;
    uint64_t bytes_of(const Tensor &tensor, const char *path) const;
    void check_data(uint64_t data_bytes, const char *path);

    std::string texts_;
    std::vector<int64_t> sizes_;
    std::vector<Tensor> tensors_;
    std::vector<Pair> metadata_;
};

// A header to write: tensors by dtype, the most aligned first, then by name; padded so that data begins at a multiple
// of 64 bytes. Offsets are those in the file.
struct TensorToStore {
    std::string name;
    yoke_dtype dtype = YOKE_NONE;
    std::vector<int64_t> shape;
    uint64_t bytes = 0, begin = 0;  // `begin` is found, in the data
};
std::string make_stored_header(std::vector<TensorToStore> &tensors,
                               const std::vector<std::pair<std::string, std::string>> &metadata);

}  // namespace yoke
