#include "core/parallel/reducer.h"

#include "core/base/error.h"
#include "core/comm/coalesce.h"
#include "core/parallel/model_comparison.h"
#include "core/parallel/module_values.h"
#include "core/parallel/tell_raised.h"
#include "core/parallel/tied_outputs.h"

#include <atomic>
#include <cmath>
#include <utility>

namespace yoke {

// ---- Making -----------------------------------------------------------------------------------------------------

namespace {

std::atomic<uint64_t> reducers_made{0};

}  // namespace

Reducer::Reducer(Ref<Group> group, WrappedModule module, const ReducerOptions &options)
    : group_(std::move(group)),
      module_(std::move(module)),
      options_(options),
      order_(++reducers_made),
      compression_(options.hook ? make_hook(options.hook, group_)
                                : make_compression(options.compression, group_, options.flags)),
      layout_(*group_, module_, *compression_, options.sizes),
      writes_(module_),
      steps_(layout_, *compression_, gate_, writes_),
      leaves_(*this)
{
}

std::shared_ptr<Reducer> Reducer::make(const Ref<Group> &group, std::vector<ModuleTensor> params,
                                       std::vector<ModuleTensor> buffers,
                                       const ReducerOptions &options)
{
    const NoGrad no_grad;
    const std::shared_ptr<Reducer> made =
        make_checked(group, std::move(params), std::move(buffers), options);
    try {
        if (group->size() > 1) {
            made->compare_models(nullptr);
            const uint64_t before = group->flights().issued_ever();
            take_values_of_rank_0(*group, made->module_);
            if (group->rank() != 0 && group->flights().issued_ever() != before)
                made->writes_.note_given(group->flights().issued_ever());
        }
        made->enter_group(nullptr);
        made->take_leaves(nullptr);
    } catch (const UnlikeModels &) {
        throw;
    } catch (...) {
        made->detach();
        tell_raised(*group, kDdpCall);
        throw;
    }
    return made;
}

std::shared_ptr<Reducer> Reducer::make_checked(const Ref<Group> &group,
                                               std::vector<ModuleTensor> params,
                                               std::vector<ModuleTensor> buffers,
                                               const ReducerOptions &options)
{
    group->or_refuse([] { Coalescing::check_closed(kDdpCall); });
    std::shared_ptr<Reducer> made;
    try {
        made.reset(
            new Reducer(group, WrappedModule(std::move(params), std::move(buffers)), options));
    } catch (const Error &error) {
        tell_refused(*group, error);
        throw;
    }
    group->or_refuse([&] { made->leaves_.check_free(kDdpCall); });
    return made;
}

std::shared_ptr<Reducer> Reducer::make_next(const Ref<Group> &group) const
{
    return std::shared_ptr<Reducer>(new Reducer(group, module_, options_));
}

std::shared_ptr<Reducer> Reducer::of(Group &group, const char *call)
{
    std::vector<std::shared_ptr<Reducer>> all = group.reducers().living();
    if (all.empty())
        fail(
            YOKE_E_STATE,
            "%s: this group of %d ranks has no DistributedDataParallel; wrap the module first, and keep the wrapper",
            call, group.size());
    if (all.size() > 1)
        fail(
            YOKE_E_STATE,
            "%s: this group reduces the gradients of %zu modules, but this call serves only one; release the other wrappers",
            call, all.size());
    return std::move(all.front());
}

void Reducer::compare_models(const Reducer *former) const
{
    FormerPlace place;
    if (former) place = {static_cast<int64_t>(former->group_->number()), former->first_number_};
    yoke::compare_models(*group_, module_, {options_.sizes, *compression_, options_.flags}, place);
}

void Reducer::enter_group(const Reducer *former)
{
    const int64_t number = group_->reducers().add(weak_from_this());
    const bool is_back = former && former->group_.get() == group_.get();
    first_number_ = is_back ? former->first_number_ : number;
    steps_.set_module_number(number);
    group_->backwards().note_params(module_.size());
}

void Reducer::take_leaves(const Reducer *former)
{
    if (former) leaves_.keep_anchor_of(former->leaves_);
    layout_.lay_out_at_first();
    leaves_.take();
}

// ---- For scripts ------------------------------------------------------------------------------------------------

void Reducer::let_go() noexcept
{
    if (!group_->is_here() || group_->is_failed() || group_->size() == 1 || gate_.is_closed())
        return detach();
    leaves_.let_go();
}

void Reducer::set_weight(double n)
{
    group_->or_refuse([&] {
        if (!(n > 0) || std::isinf(n))
            fail(
                YOKE_E_VALUE,
                "set_weight: argument 'n' is %g; it must be above 0, such as the tokens of this rank's batch",
                n);
    });
    gate_.set_weight(n);
}

uint64_t Reducer::check()
try {
    const bool is_retired = gate_.is_retired();
    if (!is_retired) group_->backwards().go_on();
    group_->check_running("DistributedDataParallel");
    if (is_retired)
        fail(
            YOKE_E_STATE,
            "DistributedDataParallel: a regroup of this module failed, so its gradients are not reduced; call regroup again with a group that has not failed");
    return next_sequence_number();
} catch (...) {
    gate_.close();
    note_told_of_all(*group_, false);
    throw;
}

std::vector<Tensor> Reducer::tied(TensorList outputs, uint64_t forward) const
{
    if (group_->size() == 1) return std::vector<Tensor>(outputs.size());
    return tied_outputs(outputs, forward, leaves_.anchor());
}

bool Reducer::is_live() const
try {
    if (gate_.is_closed()) return false;
    group_->check_running("DistributedDataParallel");
    return true;
} catch (const Error &) {
    return false;
}

Ref<State> Reducer::comm_state() const
{
    const NoGrad no_grad;
    const auto resting = gate_.hold_resting("comm_state");
    return state_of(compression_->state());
}

void Reducer::load_comm_state(const State &state)
{
    const NoGrad no_grad;
    const auto resting = gate_.hold_resting("load_comm_state");
    compression_->load(read_compression_state(state, "load_comm_state"));
}

// ---- Going on in another group ----------------------------------------------------------------------------------

// Leaves the leaves, closes the gate, and drops buckets and gradients. Frees gradients last, without locks held: a
// gradient may be memory of the script, whose release calls into the script.
void Reducer::retire()
{
    {
        const auto resting = gate_.hold_resting("regroup");
        compression_->lay_out({}, module_.names());
        gate_.retire(resting);
    }
    detach();
    layout_.clear();
    for (size_t i = 0; i < module_.size(); ++i) module_.leaf(i).set_grad(nullptr);
}

CompressionState Reducer::compression_state() const
{
    const auto held = gate_.hold();
    return compression_->state();
}

// Takes over settings and writes of the former reducer, and loads `state`. Values missing in `state` stay this rank's
// own, from the former compression.
void Reducer::go_on_from(const Reducer &former, CompressionState state)
{
    gate_.go_on_from(former.gate_);
    writes_.go_on_from(former.writes_);
    state.tensors.merge(former.compression_state().tensors);
    compression_->load(state);
}

}  // namespace yoke
