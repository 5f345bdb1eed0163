#include "core/parallel/bucket_layout.h"

#include "core/base/error.h"
#include "core/ops/ops.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace yoke {

BucketLayout::BucketLayout(Group &group, const WrappedModule &module, Compression &compression,
                           BucketSizes sizes)
    : group_(group),
      module_(module),
      compression_(compression),
      sizes_(sizes),
      places_(module.size())
{
}

void BucketLayout::lay_out_at_first()
{
    std::vector<size_t> order(module_.size());
    std::iota(order.rbegin(), order.rend(), size_t{0});
    std::vector<Tensor> params = module_.tensors();
    if (group_.size() > 1) return lay_out(plan_buckets(params, order, sizes_));
    std::ranges::reverse(params);
    compression_.lay_out({{nullptr, std::move(order), std::move(params)}}, module_.names());
}

void BucketLayout::lay_out_again(const std::vector<size_t> &order)
{
    awaits_order_ = false;
    const BucketPlan plan = plan_buckets(module_.tensors(), order, sizes_);
    const bool is_same = std::ranges::equal(
        plan, buckets_, [](const auto &a, const Bucket &b) { return a == b.params; });
    if (!is_same) lay_out(plan);
}

// Makes the buckets of a plan. Moves gradients out of the old buckets, a bucket at a time, and then into the new
// buckets. So beside the gradients there is never more than a single bucket.
void BucketLayout::lay_out(const BucketPlan &plan)
{
    compression_.lay_out({}, module_.names());
    std::vector<bool> moves(module_.size());
    for (Bucket &old : std::exchange(buckets_, {})) {
        for (size_t k = 0; k < old.params.size(); ++k) {
            LeafNode &leaf = module_.leaf(old.params[k]);
            moves[old.params[k]] = holds_view(leaf, old.views[k]);
            if (moves[old.params[k]]) leaf.set_grad(ops::clone(*old.views[k]));
        }
        old = {};
    }
    const std::vector<Tensor> params = module_.tensors();
    for (size_t i = 0; i < plan.size(); ++i) {
        const Bucket &made = buckets_.emplace_back(make_bucket(group_, params, plan[i]));
        for (size_t k = 0; k < plan[i].size(); ++k) {
            places_[plan[i][k]] = {i, k};
            if (!moves[plan[i][k]]) continue;
            LeafNode &leaf = module_.leaf(plan[i][k]);
            ops::copy_(*made.views[k], *leaf.grad());
            leaf.set_grad(alias(*made.views[k]));
        }
    }
    compression_.lay_out(buckets_, module_.names());
}

const Tensor &BucketLayout::view_of(size_t param) const
{
    const Place &place = places_[param];
    return buckets_[place.bucket].views[place.view];
}

bool BucketLayout::holds_view(const LeafNode &leaf, const Tensor &view) const
{
    const Tensor held = leaf.grad();
    return held.present() && held->storage.get() == view->storage.get() &&
           held->data == view->data && same(held->strides(), view->strides());
}

std::vector<std::vector<std::string>> BucketLayout::names() const
{
    std::vector<std::vector<std::string>> all;
    for (const Bucket &bucket : buckets_) {
        std::vector<std::string> &names = all.emplace_back();
        for (const size_t each : bucket.params) names.push_back(module_.params()[each].name);
    }
    return all;
}

void BucketLayout::check_places() const
{
    for (size_t i = 0; i < module_.size(); ++i) {
        const ModuleTensor &given = module_.params()[i];
        const yoke_tensor &param = *given.tensor, &view = *view_of(i);
        if (param.dtype != view.dtype || param.device != view.device)
            fail(
                YOKE_E_STATE,
                "backward: the parameter '%s' is now %s, but its gradients are reduced as %s; move or cast the module before wrapping, or wrap the module again",
                given.name.c_str(), describe(param).c_str(), describe(view).c_str());
    }
}

void BucketLayout::part_gradients()
{
    for (size_t i = 0; i < module_.size(); ++i) {
        LeafNode &leaf = module_.leaf(i);
        const Tensor held = leaf.grad();
        if (!held.present() || holds_view(leaf, view_of(i))) continue;
        const auto lies_in = [&](const Bucket &each) {
            return each.memory->storage.get() == held->storage.get();
        };
        if (std::ranges::any_of(buckets_, lies_in)) leaf.set_grad(ops::clone(*held));
    }
}

void BucketLayout::store(size_t param, const Tensor &gradient)
{
    LeafNode &leaf = module_.leaf(param);
    const Tensor &view = view_of(param);
    if (holds_view(leaf, view)) {
        if (gradient.present()) ops::add_(*view, *gradient);
        return;
    }
    const Tensor held = leaf.grad();
    if (held.present()) {
        ops::copy_(*view, *held);
        if (gradient.present()) ops::add_(*view, *gradient);
    } else if (gradient.present()) {
        ops::copy_(*view, *gradient);
    } else {
        ops::fill_(*view, 0.0);
    }
    leaf.set_grad(alias(*view));
}

void BucketLayout::hand_out(size_t param)
{
    LeafNode &leaf = module_.leaf(param);
    if (!holds_view(leaf, view_of(param))) leaf.set_grad(alias(*view_of(param)));
}

}  // namespace yoke
