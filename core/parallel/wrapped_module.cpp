#include "core/parallel/wrapped_module.h"

#include "core/base/error.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace yoke {

namespace {

void check_params(const std::vector<ModuleTensor> &params)
{
    std::unordered_map<const void *, const std::string *> seen;
    if (std::ranges::all_of(params, &ModuleTensor::is_frozen))
        fail(
            YOKE_E_VALUE,
            "DistributedDataParallel: the module has no parameter that requires a gradient; call requires_grad_() on its parameters, or use the module without the wrapper");
    for (const ModuleTensor &each : params) {
        if (!is_leaf(*each.tensor))
            fail(
                YOKE_E_VALUE,
                "DistributedDataParallel: the parameter '%s', %s, was made by an op; a parameter must be a leaf",
                each.name.c_str(), describe(*each.tensor).c_str());
        const void *const node = node_of(*each.tensor);
        const auto [place, is_new] = seen.emplace(node ? node : each.tensor.get(), &each.name);
        if (!is_new)
            fail(
                YOKE_E_VALUE,
                "DistributedDataParallel: the parameters '%s' and '%s' are the same tensor; give the tensor once",
                place->second->c_str(), each.name.c_str());
    }
}

std::vector<ModuleTensor> checked(std::vector<ModuleTensor> params)
{
    for (ModuleTensor &each : params) each.is_frozen = !each.tensor->requires_grad();
    check_params(params);
    return params;
}

std::vector<ModuleTensor> trained(const std::vector<ModuleTensor> &params)
{
    std::vector<ModuleTensor> some;
    std::ranges::copy_if(params, std::back_inserter(some),
                         [](const ModuleTensor &each) { return !each.is_frozen; });
    return some;
}

// Returns a view that can be written. An axis whose places share the same memory is cut to a single place.
Tensor without_repeats(Tensor x)
{
    for (int axis = expanded_axis(*x); axis >= 0; axis = expanded_axis(*x)) {
        std::vector<int64_t> shape(x->shape().begin(), x->shape().end());
        shape[static_cast<size_t>(axis)] = 1;
        x = make_view(*x, shape, x->strides().data(), 0);
    }
    return x;
}

std::vector<ModuleTensor> without_repeats(std::vector<ModuleTensor> buffers)
{
    for (ModuleTensor &each : buffers) each.tensor = without_repeats(each.tensor);
    return buffers;
}

}  // namespace

WrappedModule::WrappedModule(std::vector<ModuleTensor> params, std::vector<ModuleTensor> buffers)
    : all_params_(checked(std::move(params))),
      params_(trained(all_params_)),
      buffers_(without_repeats(std::move(buffers)))
{
    for (const ModuleTensor &each : params_) {
        auto *const leaf = static_cast<LeafNode *>(node_of(*each.tensor));
        numbers_.emplace(leaf, leaves_.size());
        leaves_.push_back(Ref<LeafNode>::share(leaf));
    }
}

std::optional<size_t> WrappedModule::find(const LeafNode &leaf) const
{
    const auto found = numbers_.find(&leaf);
    if (found == numbers_.end()) return std::nullopt;
    return found->second;
}

std::vector<Tensor> WrappedModule::tensors() const
{
    std::vector<Tensor> all;
    for (const ModuleTensor &each : params_) all.push_back(each.tensor);
    return all;
}

std::vector<std::string> WrappedModule::names() const
{
    std::vector<std::string> names;
    for (const ModuleTensor &each : params_) names.push_back(each.name);
    return names;
}

}  // namespace yoke
