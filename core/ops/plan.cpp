#include "core/ops/plan.h"

#include "core/autograd/node.h"
#include "core/ops/ops.h"

namespace yoke {

void Plan::result(IntList shape, yoke_dtype dtype, const int64_t *strides)
{
    sources_[result_count_] = Source::kFresh;
    results_[result_count_++] = make_layout(device_, dtype, shape, strides, name());
}

void Plan::result_like(const yoke_tensor &x, yoke_dtype dtype)
{
    sources_[result_count_] = Source::kFresh;
    results_[result_count_++] = make_layout_like(x, dtype, name());
}

void Plan::view(const yoke_tensor &x, IntList shape, const int64_t *strides, int64_t offset)
{
    sources_[result_count_] = Source::kView;
    results_[result_count_] = make_view(x, shape, strides, offset);
    results_[result_count_]->is_view = true;
    if (x.storage.present())
        results_[result_count_]->node_rewrites =
            x.storage->rewrites.load(std::memory_order_relaxed);
    if (is_floating(x.dtype) && grad_enabled())
        results_[result_count_]->base =
            x.is_view ? x.base : Tensor::share(const_cast<yoke_tensor *>(&x));
    ++result_count_;
}

void Plan::self(const yoke_tensor &x)
{
    sources_[result_count_] = Source::kSelf;
    results_[result_count_++] = Tensor::share(const_cast<yoke_tensor *>(&x));
}

void Plan::replace_by_cast(int arg, yoke_dtype dtype)
{
    replace(arg, ops::cast(*args_[arg].v.tensor, dtype));
}

void Plan::replace_list(int arg, const std::vector<Tensor> &tensors)
{
    std::vector<yoke_tensor *> list;
    list.reserve(tensors.size());
    for (const Tensor &x : tensors) {
        held_.push_back(x);
        list.push_back(x.get());
    }
    list_ = std::move(list);
    args_[arg] = arg_tensors(list_);
}

template <class Make>
void Plan::replace_each(int arg, Make make)
{
    const yoke_arg &value = args_[arg];
    std::vector<Tensor> made;
    for (int i = 0; i < value.count; ++i) made.push_back(make(*value.v.tensors[i]));
    replace_list(arg, made);
}

void Plan::cast_list(int arg, yoke_dtype dtype)
{
    replace_each(arg, [dtype](const yoke_tensor &x) { return ops::cast(x, dtype); });
}

void Plan::separate_list(int arg, const yoke_tensor &x)
{
    const yoke_arg &value = args_[arg];
    for (int i = 0; i < value.count; ++i)
        if (shares_memory(*value.v.tensors[i], x)) return replace_each(arg, ops::clone);
}

void Plan::replace(int arg, Tensor tensor)
{
    args_[arg] = arg_tensor(*tensor);
    held_.push_back(std::move(tensor));
}

IntList Plan::keep(const Dims &dims)
{
    kept_[kept_count_] = dims;
    return kept_[kept_count_++];
}

}  // namespace yoke
