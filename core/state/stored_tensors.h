// stored_tensors.h: the tensors and the metadata of a safetensors file, as its header has them.
//
// Every rule of the format's own reader holds, and no key may come twice.
#pragma once

#include "core/base/shape.h"
#include "core/state/safetensors.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace yoke {

// Content of a file, in a few large blocks: a header of many small tensors takes less than eight times its length.
class StoredTensors {
public:
    struct Tensor {
        uint32_t name, name_length;  // in texts
        uint32_t shape, ndim;        // in sizes
        uint64_t begin, end;         // in the data
        const StoredDtype *dtype;
    };

    // Reads the header of a file of so many bytes. Raises YOKE_E_CHECKPOINT with path, rule, tensor and offset.
    static StoredTensors read(std::string_view header, uint64_t file_bytes, const char *path);

    // Returns the tensors in data order.
    const std::vector<Tensor> &tensors() const { return tensors_; }
    std::string_view name(const Tensor &tensor) const
    {
        return text(tensor.name, tensor.name_length);
    }
    IntList shape(const Tensor &tensor) const
    {
        return {sizes_.data() + tensor.shape, tensor.ndim};
    }
    // Returns the number of metadata strings. metadata() returns a key and its string, in the order of the header.
    size_t metadata_count() const { return metadata_.size(); }
    std::pair<std::string_view, std::string_view> metadata(size_t i) const;

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

}  // namespace yoke
