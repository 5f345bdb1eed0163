// Whose gradients the leaves of a model's parameters give on: a reducer's, as long as its group lives.
#include "core/base/error.h"
#include "core/parallel/reducer.h"

#include <algorithm>
#include <new>
#include <numeric>
#include <utility>

namespace yoke {

namespace {

// Stands where a reducer was. It holds nothing of it.
class LetGo final : public LeafWatcher {
public:
    LetGo(uint64_t from, uint64_t to, int32_t size) : from_(from), to_(to), size_(size) {}
    void begin(const std::vector<Ref<LeafNode>> &, uint64_t oldest) override
    {
        if (oldest >= from_ && oldest < to_)
            yoke::fail(
                YOKE_E_STATE,
                "backward: the DistributedDataParallel that would reduce these gradients over %d ranks was let go after the forward; hold it until backward has ended",
                size_);
    }
    void arrive(LeafNode &leaf, Tensor gradient) override { leaf.add(std::move(gradient)); }
    void end() override {}
    void fail() noexcept override {}

private:
    const uint64_t from_, to_;  // what was recorded between
    const int32_t size_;
};

}  // namespace

// In a forked child nobody counts: the group is not there, and its locks may be held for good.
void Reducer::Alone::begin(const std::vector<Ref<LeafNode>> &reached, uint64_t oldest)
{
    for (const Ref<LeafNode> &leaf : reached)
        if (const auto &let_go = of_.before_[of_.numbers_.at(leaf.get())].let_go)
            let_go->begin(reached, oldest);
    if (of_.group_->is_here()) of_.group_->backwards().begin(of_.is_sync());
}

void Reducer::Alone::arrive(LeafNode &leaf, Tensor gradient)
{
    leaf.add(std::move(gradient));
}

void Reducer::Alone::end()
{
    using End = Backwards::End;
    if (!of_.group_->is_here()) return;
    if (of_.group_->backwards().end(of_.is_sync() ? End::kReduced : End::kAlone))
        of_.look_at_all_parameters();
}

void Reducer::Alone::fail() noexcept
{
    if (of_.group_->is_here()) of_.group_->backwards().end(Backwards::End::kFailed);
}

// One whose group has failed reduces no more; what is made in its place takes its leaves.
bool Reducer::is_live()
try {
    {
        const std::lock_guard lock(mutex_);
        if (is_over_) return false;
    }
    group_->check_running("DistributedDataParallel");
    return true;
} catch (const Error &) {
    return false;
}

void Reducer::check_unwatched(const char *call) const
{
    for (size_t i = 0; group_->size() > 1 && i < params_.size(); ++i)
        if (reducing(i))
            yoke::fail(
                YOKE_E_STATE,
                "%s: the parameter '%s' is wrapped already, and its gradients are reduced there; let that one go before (del ddp; in Lua ddp:close(), in C yoke_reducer_release), which an assignment over it does too late, or regroup that one",
                call, params_[i].name.c_str());
}

// Whether another one does so with the gradients of a parameter.
bool Reducer::reducing(size_t param) const
{
    const auto other = std::dynamic_pointer_cast<Reducer>(leaf_of(param).watcher());
    return other && other.get() != this && other->is_live();
}

// One that is alone in its group leaves a leaf to a reducer, and keeps what else is there.
bool Reducer::takes(size_t param)
{
    if (group_->size() > 1) return true;
    if (reducing(param)) return false;
    const std::shared_ptr<LeafWatcher> there = leaf_of(param).watcher();
    Before &before = before_[param];
    if (std::dynamic_pointer_cast<LetGo>(there)) before.let_go = there;
    if (const auto other = std::dynamic_pointer_cast<Alone>(there)) {
        Reducer &of = other->of();
        before = of.before_[of.numbers_.at(&leaf_of(param))];
        std::erase_if(before.alone, [](const auto &each) { return each.expired(); });
        before.alone.push_back(of.weak_from_this());
    }
    return true;
}

// What comes back to the leaf when this one leaves.
std::shared_ptr<LeafWatcher> Reducer::former(size_t param) const noexcept
{
    if (before_.empty()) return nullptr;
    const Before &before = before_[param];
    for (auto each = before.alone.rbegin(); each != before.alone.rend(); ++each)
        if (const std::shared_ptr<Reducer> other = each->lock(); other && !other->has_left_.load())
            return {other, &other->alone_};
    return before.let_go;
}

// Nothing is reduced where it is alone; the compression's state is kept for another group.
void Reducer::install()
{
    std::vector<size_t> order(params_.size());
    std::iota(order.rbegin(), order.rend(), size_t{0});
    if (group_->size() == 1) {
        std::vector<Tensor> params = tensors();
        std::ranges::reverse(params);
        compression_->lay_out({{nullptr, std::move(order), std::move(params)}}, names());
        before_.resize(params_.size());
    } else {
        lay_out(plan_buckets(tensors(), order, options_.sizes));
        installed_at_ = next_sequence_number();
        anchor_->set_watcher(shared_from_this());
    }
    for (size_t i = 0; i < params_.size(); ++i)
        if (takes(i)) leaf_of(i).set_watcher({shared_from_this(), watcher()});
}

LeafWatcher *Reducer::watcher()
{
    return group_->size() > 1 ? static_cast<LeafWatcher *>(this) : &alone_;
}

// Gradients stay where they are.
void Reducer::detach() noexcept
{
    leave_leaves(nullptr);
}

void Reducer::leave_leaves(const std::shared_ptr<LeafWatcher> &next) noexcept
{
    has_left_.store(true);
    for (size_t i = 0; i < params_.size(); ++i)
        if (leaf_of(i).watcher().get() == watcher())
            leaf_of(i).set_watcher(next ? next : former(i));
    if (anchor_->watcher().get() == this) anchor_->set_watcher(nullptr);
}

namespace {

// The same for what the module gave, as long as one of the parameters is not wrapped anew.
class LetGoOutput final : public LeafWatcher {
public:
    explicit LetGoOutput(const std::shared_ptr<LeafWatcher> &of) : of_(of) {}
    void begin(const std::vector<Ref<LeafNode>> &reached, uint64_t oldest) override
    {
        if (const auto of = of_.lock()) of->begin(reached, oldest);
    }
    void arrive(LeafNode &, Tensor) override {}
    void end() override {}
    void fail() noexcept override {}

private:
    const std::weak_ptr<LeafWatcher> of_;
};

}  // namespace

void Reducer::let_go() noexcept
try {
    bool is_over = !group_->is_here() || group_->is_failed() || group_->size() == 1;
    {
        const std::lock_guard lock(mutex_);
        is_over |= is_over_;
    }
    if (is_over) return detach();
    const auto left =
        std::make_shared<LetGo>(installed_at_, next_sequence_number(), group_->size());
    const auto of_output = std::make_shared<LetGoOutput>(left);
    const bool is_tied = anchor_->watcher().get() == this;
    leave_leaves(left);
    if (is_tied) anchor_->set_watcher(of_output);
} catch (const std::bad_alloc &) {
    detach();
}

}  // namespace yoke
