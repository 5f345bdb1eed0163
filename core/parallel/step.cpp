#include "core/parallel/step.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/comm/coalesce.h"
#include "core/comm/numbers.h"
#include "core/ops/ops.h"
#include "core/parallel/module_values.h"

#include <cmath>
#include <utility>

namespace yoke {

namespace {

constexpr const char *kBackward = "backward";

}  // namespace

Step::Step(BucketLayout &layout, Compression &compression, int64_t module, const StepTerms &terms)
    : layout_(layout),
      compression_(compression),
      module_(layout.module()),
      number_(module),
      terms_(terms),
      header_(layout.group(), module_.size(), module, terms)
{
}

Step::~Step()
{
    if (before_) before_->after_ = nullptr;
    if (after_) after_->before_ = nullptr;
}

Backwards::End Step::end() const noexcept
{
    return !terms_.is_synced                   ? Backwards::End::kAlone
           : terms_.presence == Presence::kOut ? Backwards::End::kAnswered
                                               : Backwards::End::kReduced;
}

void Step::begin(const std::vector<Ref<LeafNode>> &reached)
{
    if (!terms_.is_alone) {
        layout_.check_places();
        layout_.part_gradients();
    }
    if (!terms_.is_synced) return;
    Coalescing::check_closed(kBackward);
    check_params();
    reach(reached);
}

void Step::check_params() const
{
    for (const ModuleTensor &each : module_.params())
        if (each.tensor->frozen)
            fail(
                YOKE_E_STATE,
                "backward: the parameter '%s' was frozen after it was wrapped for %d ranks; wrap the module again",
                each.name.c_str(), layout_.group().size());
}

// Notes which parameters this backward reaches; the other parameters count as arrived. The reducer's anchor is left
// out, because it has no parameter.
void Step::reach(const std::vector<Ref<LeafNode>> &reached)
{
    uses_.assign(module_.size(), false);
    for (const Ref<LeafNode> &leaf : reached)
        if (const auto param = module_.find(*leaf)) uses_[*param] = true;
    for (const Bucket &bucket : layout_.buckets()) missing_.push_back(bucket.params.size());
    for (size_t i = 0; i < module_.size(); ++i) {
        if (uses_[i]) continue;
        --missing_[layout_.bucket_of(i)];
        uses_[i] = module_.leaf(i).grad().present();
        unreached_.push_back(i);
    }
}

// Sends the header of a step. The last of several steps launches the buckets, and the first step's module was made
// last. Usually the last-made module is used last, so its gradients come first.
void Step::open(Step *before, Step *after)
{
    before_ = before;
    after_ = after;
    header_.send(uses_, after ? after->number_ : 0);
    if (after) return;
    Step *first = this;
    for (Step *each = this; each; each = each->before_) {
        each->store_unreached();
        first = each;
    }
    first->launch_full();
}

// Returns the header with the sums over all ranks. The first call, for the first gradient, waits for the header.
const StepHeader &Step::header()
{
    if (header_.has_come()) return header_;
    if (before_) before_->header();  // unlike modules show in the first header first
    header_.receive();
    return header_;
}

// Writes the gradients of unreached parameters into the buckets: gradients left by no_sync, or 0.
void Step::store_unreached()
{
    for (const size_t i : unreached_)
        if (uses_[i])
            store(i, nullptr);
        else
            ops::fill_(*layout_.view_of(i), 0.0);
}

void Step::store(size_t param, Tensor gradient)
{
    layout_.store(param, gradient);
    if (!terms_.is_synced) return;
    const double part =
        header().factor(terms_.weight) / room_above(layout_.buckets()[layout_.bucket_of(param)]);
    if (part != 1) ops::mul_(*layout_.view_of(param), part);
}

// Returns the heaviest rank's factor, rounded up to a power of 2, if gradients are sent as float16. Gradients are
// divided by this number before the call, and the mean is multiplied by it. So if a float16 can hold the mean, no
// value on the way is larger than the gradients.
double Step::room_above(const Bucket &bucket)
{
    if (compression_.passes(bucket.memory->dtype) != YOKE_F16) return 1;
    return std::exp2(std::ceil(std::log2(header().factor(header().heaviest()))));
}

void Step::arrive(LeafNode &leaf, Tensor gradient)
{
    const auto param = module_.find(leaf);
    if (!param) return;  // the anchor
    if (terms_.is_alone) return leaf.add(std::move(gradient));
    if (!terms_.is_synced && !gradient.present()) return;
    store(*param, std::move(gradient));
    if (!terms_.is_synced) {
        has_unsynced_ = true;
        return;
    }
    order_.push_back(*param);
    if (!--missing_[layout_.bucket_of(*param)]) launch_full();
}

// Begins full buckets after all small all_reduces of the backward, and after all buckets of the step before.
void Step::launch_full()
{
    if (before_ && !before_->has_begun_all()) return;
    std::vector<Bucket> &buckets = layout_.buckets();
    while (begun_ < buckets.size() && !missing_[begun_]) {
        const size_t next = begun_++;
        compression_.begin(buckets[next], next, begun_ == buckets.size());
    }
    if (after_ && has_begun_all()) after_->launch_full();
}

bool Step::has_begun_all() const
{
    return begun_ == layout_.buckets().size();
}

void Step::finish()
{
    const Interruptible waits(kBackward);
    header();
    std::vector<Bucket> &buckets = layout_.buckets();
    for (size_t i = 0; i < buckets.size(); ++i) compression_.go_on(buckets[i], i);
    for (size_t i = 0; i < buckets.size(); ++i) end_bucket(i);
    if (layout_.awaits_order()) tell_order();
    send_values(layout_.group(), module_.buffers(), root(), Writes::kUnlike);
}

// Waits for a bucket's mean and gives it to the leaves. A rank out of data gets gradients at the end of the join, so
// its gradients stay unchanged here.
void Step::end_bucket(size_t index)
{
    Bucket &bucket = layout_.buckets()[index];
    compression_.end(bucket, index);
    for (size_t k = 0; k < bucket.params.size(); ++k)
        if (!header().is_used(bucket.params[k])) compression_.keep(bucket, index, k);
    if (const double room = room_above(bucket); room != 1) ops::mul_(*bucket.memory, room);
    if (terms_.presence == Presence::kOut) return;
    for (const size_t param : bucket.params)
        if (header().is_used(param)) layout_.hand_out(param);
}

// Sends the root's order of arrived gradients to all ranks, and lays the buckets out in this order. Parameters
// without a gradient come behind the others. The root is rank 0 if all ranks have data.
void Step::tell_order()
{
    std::vector<int64_t> order(order_.begin(), order_.end());
    std::vector<bool> has_come(module_.size());
    for (const size_t each : order_) has_come[each] = true;
    for (size_t i = module_.size(); i-- > 0;)
        if (!has_come[i]) order.push_back(static_cast<int64_t>(i));
    const Tensor told = tensor_of(order, kBackward);
    layout_.group().run({YOKE_COMM_BROADCAST, -1, root(), told, told}, false);
    order = numbers_of<int64_t>(told, kBackward);
    layout_.lay_out_again({order.begin(), order.end()});
}

bool Step::answer()
{
    uses_.assign(module_.size(), false);
    missing_.assign(layout_.buckets().size(), 0);  // without gradients, every bucket is complete
    header_.send(uses_, 0);
    if (header().root() < 0) return false;
    for (const Bucket &bucket : layout_.buckets()) ops::fill_(*bucket.memory, 0.0);
    launch_full();
    return true;
}

}  // namespace yoke
