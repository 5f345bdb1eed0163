#include "core/parallel/leaf_watchers.h"

#include "core/base/error.h"
#include "core/parallel/reducer.h"

#include <algorithm>
#include <new>
#include <utility>

namespace yoke {

// ---- Reducing ---------------------------------------------------------------------------------------------------

uint64_t Reducing::order() const noexcept
{
    return of_.order();
}

void Reducing::begin(const std::vector<Ref<LeafNode>> &reached, uint64_t oldest)
{
    of_.steps().begin(reached, oldest);
}

// Opens this reducer's step between its neighbours: reducers of the same group whose calls come before and behind
// this reducer's. The order of calls is the order of `all`, whatever the graph is.
void Reducing::open(std::span<LeafWatcher *const> all)
{
    if (!of_.steps().is_synced_over(of_.group())) return;
    StepRunner *before = nullptr, *after = nullptr;
    bool is_behind = false;
    for (LeafWatcher *each : all) {
        auto *const other = dynamic_cast<Reducing *>(each);
        if (other == this) is_behind = true;
        if (!other || other == this || !other->of_.steps().is_synced_over(of_.group())) continue;
        (is_behind ? after : before) = &other->of_.steps();
        if (is_behind) break;
    }
    of_.steps().open(before, after);
}

void Reducing::arrive(LeafNode &leaf, Tensor gradient)
{
    of_.steps().arrive(leaf, std::move(gradient));
}

void Reducing::end()
{
    of_.steps().end();
}

void Reducing::fail() noexcept
{
    of_.steps().fail();
}

void Reducing::refuse() noexcept
{
    of_.steps().refuse();
}

// ---- Alone ------------------------------------------------------------------------------------------------------

uint64_t Alone::order() const noexcept
{
    return of_.order();
}

void Alone::begin(const std::vector<Ref<LeafNode>> &reached, uint64_t oldest)
{
    for (const Ref<LeafNode> &leaf : reached)
        if (LeafWatcher *const let_go = of_.leaves().let_go_before(*leaf))
            let_go->begin(reached, oldest);
    if (of_.group().is_here()) of_.group().backwards().begin(of_.is_sync());
}

void Alone::arrive(LeafNode &leaf, Tensor gradient)
{
    leaf.add(std::move(gradient));
}

void Alone::end()
{
    using End = Backwards::End;
    if (!of_.group().is_here()) return;
    if (of_.group().backwards().end(of_.is_sync() ? End::kReduced : End::kAlone))
        end_backward_of_all(of_.group(), of_.writes());
}

void Alone::fail() noexcept
{
    if (of_.group().is_here()) of_.group().backwards().end(Backwards::End::kFailed);
}

// ---- LetGo, LetGoOutput -----------------------------------------------------------------------------------------

namespace {

// Watcher that raises in a backward of ops recorded while the reducer had the leaf. Otherwise the gradients would
// silently be this rank's alone.
class LetGo final : public LeafWatcher {
public:
    LetGo(uint64_t from, uint64_t to, int32_t size) : from_(from), to_(to), size_(size) {}
    void begin(const std::vector<Ref<LeafNode>> &, uint64_t oldest) override
    {
        if (oldest >= from_ && oldest < to_)
            yoke::fail(
                YOKE_E_STATE,
                "backward: the DistributedDataParallel that reduces these gradients over %d ranks was released after the forward; keep the object until backward has ended",
                size_);
    }
    void arrive(LeafNode &leaf, Tensor gradient) override { leaf.add(std::move(gradient)); }
    void end() override {}
    void fail() noexcept override {}

private:
    const uint64_t from_, to_;  // ops recorded between these numbers
    const int32_t size_;
};

// Watcher that raises as the LetGo of the parameters does, until all parameters are wrapped anew.
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

// ---- WatchedLeaves ----------------------------------------------------------------------------------------------

void WatchedLeaves::check_free(const char *call) const
{
    if (of_.group().size() == 1) return;
    for (size_t i = 0; i < of_.module().size(); ++i)
        if (is_reduced_elsewhere(i))
            fail(
                YOKE_E_STATE,
                "%s: the parameter '%s' is already wrapped; release that wrapper first (del ddp; in Lua ddp:close(), in C yoke_reducer_release), because an assignment releases it too late, or regroup that wrapper",
                call, of_.module().params()[i].name.c_str());
}

// Returns whether another live reducer has the leaf. Reducers of failed groups do not count: their successors take the
// leaves.
bool WatchedLeaves::is_reduced_elsewhere(size_t param) const
{
    const std::shared_ptr<LeafWatcher> there = of_.module().leaf(param).watcher();
    const auto *const other = dynamic_cast<const Reducing *>(there.get());
    return other && &other->of() != &of_ && other->of().is_live();
}

void WatchedLeaves::take()
{
    if (of_.group().size() == 1) {
        before_.resize(of_.module().size());
    } else {
        taken_at_ = next_sequence_number();
        anchor_->set_watcher({of_.shared_from_this(), &reducing_});
    }
    for (size_t i = 0; i < of_.module().size(); ++i)
        if (takes(i)) of_.module().leaf(i).set_watcher({of_.shared_from_this(), watcher()});
}

LeafWatcher *WatchedLeaves::watcher() noexcept
{
    return of_.group().size() > 1 ? static_cast<LeafWatcher *>(&reducing_) : &alone_;
}

// Returns whether the reducer takes a leaf. A reducer of a single rank does not take the leaf of a live Reducing. Of
// other leaves, such a reducer keeps the earlier watchers for later.
bool WatchedLeaves::takes(size_t param)
{
    if (of_.group().size() > 1) return true;
    if (is_reduced_elsewhere(param)) return false;
    const LeafNode &leaf = of_.module().leaf(param);
    const std::shared_ptr<LeafWatcher> there = leaf.watcher();
    Before &before = before_[param];
    if (std::dynamic_pointer_cast<LetGo>(there)) before.let_go = there;
    if (const auto other = std::dynamic_pointer_cast<Alone>(there)) {
        Reducer &of = other->of();
        before = of.leaves().before_[of.module().find(leaf).value()];
        std::erase_if(before.alone, [](const auto &each) { return each.expired(); });
        before.alone.push_back(of.weak_from_this());
    }
    return true;
}

LeafWatcher *WatchedLeaves::let_go_before(const LeafNode &leaf) const
{
    return before_[of_.module().find(leaf).value()].let_go.get();
}

// Returns the watcher that the leaf gets back when the reducer leaves, or null.
std::shared_ptr<LeafWatcher> WatchedLeaves::former(size_t param) const noexcept
{
    if (before_.empty()) return nullptr;
    const Before &before = before_[param];
    for (auto each = before.alone.rbegin(); each != before.alone.rend(); ++each)
        if (const std::shared_ptr<Reducer> other = each->lock();
            other && !other->leaves().has_left_.load())
            return {other, &other->leaves().alone_};
    return before.let_go;
}

void WatchedLeaves::leave_to(const std::shared_ptr<LeafWatcher> &next) noexcept
{
    has_left_.store(true);
    for (size_t i = 0; i < of_.module().size(); ++i)
        if (LeafNode &leaf = of_.module().leaf(i); leaf.watcher().get() == watcher())
            leaf.set_watcher(next ? next : former(i));
    if (anchor_->watcher().get() == &reducing_) anchor_->set_watcher(nullptr);
}

void WatchedLeaves::let_go() noexcept
try {
    const auto left =
        std::make_shared<LetGo>(taken_at_, next_sequence_number(), of_.group().size());
    const auto of_output = std::make_shared<LetGoOutput>(left);
    const bool is_tied = anchor_->watcher().get() == &reducing_;
    leave_to(left);
    if (is_tied) anchor_->set_watcher(of_output);
} catch (const std::bad_alloc &) {
    leave();
}

}  // namespace yoke
