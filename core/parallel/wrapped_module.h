// wrapped_module.h: tensors of a module whose gradients a reducer averages over ranks.
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
    bool is_frozen = false;  // parameter that required no gradient when given
};

// Parameters and buffers of a module, as given. The object is constant after the constructor, so every thread reads
// it without a lock.
//
// A parameter's number is its index among the parameters that are not frozen.
class WrappedModule {
public:
    // Takes the tensors of a module. Raises YOKE_E_VALUE if no parameter requires a gradient, if an op made a
    // parameter, or if two parameters are the same tensor.
    WrappedModule(std::vector<ModuleTensor> params, std::vector<ModuleTensor> buffers);

    const std::vector<ModuleTensor> &all_params() const noexcept { return all_params_; }
    const std::vector<ModuleTensor> &params() const noexcept { return params_; }  // not frozen
    const std::vector<ModuleTensor> &buffers() const noexcept { return buffers_; }
    size_t size() const noexcept { return params_.size(); }
    // Returns the leaf of the given parameter. An op may have written the parameter since.
    LeafNode &leaf(size_t param) const { return *leaves_[param]; }
    // Returns the number of the leaf's parameter; null if the leaf has no parameter.
    std::optional<size_t> find(const LeafNode &leaf) const;
    std::vector<Tensor> tensors() const;  // tensors of params()
    std::vector<std::string> names() const;

private:
    std::vector<ModuleTensor> all_params_, params_, buffers_;
    std::vector<Ref<LeafNode>> leaves_;
    std::unordered_map<const LeafNode *, size_t> numbers_;
};

}  // namespace yoke
