#include "core/parallel/reducer.h"

#include "core/base/error.h"
#include "core/comm/coalesce.h"
#include "core/ops/ops.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

namespace yoke {

namespace {

}  // namespace

// ---- Making and leaving -----------------------------------------------------------------------------------------

namespace {

std::vector<Reducer::Named> trained(const std::vector<Reducer::Named> &params)
{
    std::vector<Reducer::Named> some;
    std::ranges::copy_if(params, std::back_inserter(some),
                         [](const Reducer::Named &each) { return !each.is_frozen; });
    return some;
}

std::vector<Ref<LeafNode>> leaves_of(const std::vector<Reducer::Named> &params)
{
    std::vector<Ref<LeafNode>> leaves;
    for (const Reducer::Named &each : params)
        leaves.push_back(Ref<LeafNode>::share(static_cast<LeafNode *>(node_of(*each.tensor))));
    return leaves;
}

std::atomic<uint64_t> reducers_made{0};

}  // namespace

Reducer::Reducer(Ref<Group> group, std::vector<Named> all_params, std::vector<Named> buffers,
                 const ReducerOptions &options, const Leaves *of_former)
    : group_(std::move(group)),
      all_params_(std::move(all_params)),
      params_(trained(all_params_)),
      buffers_(std::move(buffers)),
      options_(options),
      order_(++reducers_made),
      leaves_(of_former ? *of_former : leaves_of(params_)),
      compression_(options.hook ? make_hook(options.hook, group_)
                                : make_compression(options.compression, group_)),
      places_(params_.size())
{
    for (size_t i = 0; i < params_.size(); ++i) numbers_.emplace(&leaf_of(i), i);
    writes_.reserve(params_.size());
}

Reducer::~Reducer() = default;

namespace {

void check_params(const std::vector<Reducer::Named> &params)
{
    std::unordered_map<const void *, const std::string *> seen;
    if (std::ranges::all_of(params, &Reducer::Named::is_frozen))
        fail(YOKE_E_VALUE,
             "DistributedDataParallel: the module has no parameter that requires a gradient");
    for (const Reducer::Named &each : params) {
        if (!is_leaf(*each.tensor))
            fail(
                YOKE_E_VALUE,
                "DistributedDataParallel: the parameter '%s', %s, was made by an op; a parameter is a leaf",
                each.name.c_str(), describe(*each.tensor).c_str());
        const void *const node = node_of(*each.tensor);
        const auto [place, is_new] = seen.emplace(node ? node : each.tensor.get(), &each.name);
        if (!is_new)
            fail(
                YOKE_E_VALUE,
                "DistributedDataParallel: the parameters '%s' and '%s' are one tensor; give it once",
                place->second->c_str(), each.name.c_str());
    }
}

// What can be written of it: one of the places of each axis along which all are one.
Tensor without_repeats(Tensor x)
{
    for (int axis = expanded_axis(*x); axis >= 0; axis = expanded_axis(*x)) {
        std::vector<int64_t> shape(x->shape().begin(), x->shape().end());
        shape[static_cast<size_t>(axis)] = 1;
        x = make_view(*x, shape, x->strides().data(), 0);
    }
    return x;
}

}  // namespace

std::shared_ptr<Reducer> Reducer::make(const Ref<Group> &group, std::vector<Named> params,
                                       std::vector<Named> buffers, const ReducerOptions &options)
{
    const NoGrad no_grad;
    const std::shared_ptr<Reducer> made =
        checked(group, std::move(params), std::move(buffers), options);
    try {
        if (made->group_->size() > 1) {
            made->compare_models(nullptr);
            made->take_values_of_rank_0();
        }
        made->first_number_ = made->number_ = group->reducers().add(made);
        group->backwards().note_params(made->params_.size());
        made->install();
    } catch (const UnlikeModels &) {
        throw;
    } catch (...) {
        made->detach();
        tell_raised(*group, kDdpCall);
        throw;
    }
    return made;
}

std::shared_ptr<Reducer> Reducer::checked(const Ref<Group> &group, std::vector<Named> params,
                                          std::vector<Named> buffers, const ReducerOptions &options)
{
    group->or_refuse([] { Coalescing::check_closed(kDdpCall); });
    std::shared_ptr<Reducer> made;
    try {
        for (Named &each : params) each.is_frozen = !each.tensor->requires_grad();
        for (Named &each : buffers) each.tensor = without_repeats(each.tensor);
        yoke::check_params(params);
        made.reset(new Reducer(group, std::move(params), std::move(buffers), options, nullptr));
    } catch (const Error &error) {
        tell_refused(*group, error);
        throw;
    }
    group->or_refuse([&] { made->check_unwatched(kDdpCall); });
    return made;
}

std::vector<Tensor> Reducer::tensors() const
{
    std::vector<Tensor> all;
    for (const Named &each : params_) all.push_back(each.tensor);
    return all;
}

const Tensor &Reducer::view_of(size_t param) const
{
    const Place &place = places_[param];
    return buckets_[place.bucket].views[place.view];
}

bool Reducer::holds_view(const LeafNode &leaf, const Tensor &view) const
{
    const Tensor held = leaf.grad();
    return held.present() && held->storage.get() == view->storage.get() &&
           held->data == view->data && same(held->strides(), view->strides());
}

// A script may have given one leaf another one's view, or the same view with its axes in another order: they would be
// overwritten before they are read.
void Reducer::part_gradients()
{
    for (size_t i = 0; i < params_.size(); ++i) {
        LeafNode &leaf = leaf_of(i);
        const Tensor held = leaf.grad();
        if (!held.present() || holds_view(leaf, view_of(i))) continue;
        const auto lies_in = [&](const Bucket &each) {
            return each.memory->storage.get() == held->storage.get();
        };
        if (std::ranges::any_of(buckets_, lies_in)) leaf.set_grad(ops::clone(*held));
    }
}

// Gradients that are there already leave the old buckets, one bucket after the other, and then come into the new ones:
// so beside the gradients there is never more than one bucket, whatever lies where.
void Reducer::lay_out(const BucketPlan &plan)
{
    compression_->lay_out({}, names());
    std::vector<bool> moves(params_.size());
    for (Bucket &old : std::exchange(buckets_, {})) {
        for (size_t k = 0; k < old.params.size(); ++k) {
            LeafNode &leaf = leaf_of(old.params[k]);
            moves[old.params[k]] = holds_view(leaf, old.views[k]);
            if (moves[old.params[k]]) leaf.set_grad(ops::clone(*old.views[k]));
        }
        old = {};
    }
    const std::vector<Tensor> params = tensors();
    for (size_t i = 0; i < plan.size(); ++i) {
        const Bucket &made = buckets_.emplace_back(make_bucket(*group_, params, plan[i]));
        for (size_t k = 0; k < plan[i].size(); ++k) {
            places_[plan[i][k]] = {i, k};
            if (!moves[plan[i][k]]) continue;
            LeafNode &leaf = leaf_of(plan[i][k]);
            ops::copy_(*made.views[k], *leaf.grad());
            leaf.set_grad(alias(*made.views[k]));
        }
    }
    compression_->lay_out(buckets_, names());
}

std::vector<std::string> Reducer::names() const
{
    std::vector<std::string> names;
    for (const Named &each : params_) names.push_back(each.name);
    return names;
}

// ---- What a script sets -----------------------------------------------------------------------------------------

void Reducer::set_sync(bool is_on)
{
    const std::lock_guard lock(mutex_);
    is_sync_ = is_on;
}

bool Reducer::is_sync() const
{
    const std::lock_guard lock(mutex_);
    return is_sync_;
}

void Reducer::set_weight(double n)
{
    group_->or_refuse([&] {
        if (!(n > 0) || std::isinf(n))
            yoke::fail(
                YOKE_E_VALUE,
                "set_weight: argument 'n' is %g; it takes a number above 0, such as the tokens of this rank's batch",
                n);
    });
    const std::lock_guard lock(mutex_);
    weight_ = n;
}

uint64_t Reducer::check()
try {
    bool is_retired = false;
    {
        const std::lock_guard lock(mutex_);
        is_retired = is_retired_;
    }
    if (!is_retired) group_->backwards().go_on();
    group_->check_running("DistributedDataParallel");
    if (is_retired)
        yoke::fail(
            YOKE_E_STATE,
            "DistributedDataParallel: a regroup of this module has failed, so its gradients are this rank's alone; call regroup again, with a group that has not failed");
    return next_sequence_number();
} catch (...) {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    throw;
}

std::vector<std::vector<std::string>> Reducer::bucket_names() const
{
    std::vector<std::vector<std::string>> all;
    for (const Bucket &bucket : buckets_) {
        std::vector<std::string> &names = all.emplace_back();
        for (const size_t each : bucket.params) names.push_back(params_[each].name);
    }
    return all;
}

Ref<State> Reducer::comm_state() const
{
    const NoGrad no_grad;
    const std::lock_guard lock(state_mutex_);
    check_resting("comm_state");
    return state_of(compression_->state());
}

void Reducer::load_comm_state(const State &state)
{
    const NoGrad no_grad;
    const std::lock_guard lock(state_mutex_);
    check_resting("load_comm_state");
    compression_->load(read_compression_state(state, "load_comm_state"));
}

// Who calls it has state_mutex_, so that none begins.
void Reducer::check_resting(const char *call) const
{
    const std::lock_guard lock(mutex_);
    if (is_walking_)
        yoke::fail(YOKE_E_STATE,
                   "%s: a backward over the parameters is under way; call it when that is over",
                   call);
}

}  // namespace yoke
