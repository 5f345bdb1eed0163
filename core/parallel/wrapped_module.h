// wrapped_module.h: the tensors of a module whose gradients a reducer makes the mean over ranks.
#pragma once

#include "core/autograd/node.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace yoke {

struct ModuleTensor {
    std::string name;
    Tensor tensor;
    bool is_frozen = false;  // a parameter that required no gradient when it was given
};

// Parameters and buffers of a module as they were given. Nothing changes after the constructor, so every thread reads
// an object without a lock.
//
// A parameter's number is its place among those that are not frozen.
class WrappedModule {
public:
    // Raises YOKE_E_VALUE if no parameter requires a gradient, if an op made one, or if two are one tensor.
    WrappedModule(std::vector<ModuleTensor> params, std::vector<ModuleTensor> buffers);

    const std::vector<ModuleTensor> &all_params() const noexcept { return all_params_; }
    const std::vector<ModuleTensor> &params() const noexcept { return params_; }  // not frozen
    const std::vector<ModuleTensor> &buffers() const noexcept { return buffers_; }
    size_t size() const noexcept { return params_.size(); }
    // Returns the leaf that the parameter had when it was given: an op may have written the parameter since.
    LeafNode &leaf(size_t param) const { return *leaves_[param]; }
    // Returns the number of the leaf's parameter. Nothing: the leaf is none of a parameter.
    std::optional<size_t> find(const LeafNode &leaf) const;
    std::vector<Tensor> tensors() const;  // of params()
    std::vector<std::string> names() const;

private:
    std::vector<ModuleTensor> all_params_, params_, buffers_;
    std::vector<Ref<LeafNode>> leaves_;
    std::unordered_map<const LeafNode *, size_t> numbers_;
};

}  // namespace yoke
