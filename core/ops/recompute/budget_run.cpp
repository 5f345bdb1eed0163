#include "core/ops/recompute/budget_run.h"

#include "core/memory/relief.h"
#include "core/ops/recompute/budget.h"

#include <algorithm>
#include <new>

namespace yoke {

namespace {

// Policy of a segment: holds the results of the running call if the run says so.
class AsPlanned final : public Policy {
public:
    explicit AsPlanned(const BudgetRun &run) : run_(run) {}
    bool holds(const LoggedCall &) const noexcept override { return run_.holds(); }
    bool holds_all() const noexcept override { return run_.holds_all(); }

private:
    const BudgetRun &run_;
};

// Reports the end of a forward to its budget, also after an error.
class ForwardEnd {
public:
    explicit ForwardEnd(Ref<MemoryBudget> budget) : budget_(std::move(budget)) {}
    ~ForwardEnd() { budget_->end(); }
    ForwardEnd(const ForwardEnd &) = delete;
    ForwardEnd &operator=(const ForwardEnd &) = delete;

private:
    const Ref<MemoryBudget> budget_;
};

}  // namespace

BudgetRun::BudgetRun(Ref<MemoryBudget> budget, std::vector<Known> known)
    : budget_(std::move(budget)), known_(std::move(known))
{
    if (!known_.empty()) plan_ = known_.front().get();
    segment_ = make_segment();
}

BudgetRun::~BudgetRun() = default;

// ---- Segments -------------------------------------------------------------------------------------------------

Ref<Recording> BudgetRun::make_segment()
{
    return Ref<Recording>::adopt(new Recording({}, Ref<AsPlanned>::adopt(new AsPlanned(*this)),
                                               false, Ref<BudgetRun>::share(this)));
}

void BudgetRun::cut()
{
    const Ref<Recording> ended = std::exchange(segment_, make_segment());
    profiler_.note_cut();
    {
        const std::lock_guard lock(mutex_);
        ended_.push_back(ended.get());
    }
    ended->close();
}

void BudgetRun::forget(const Recording &segment) noexcept
{
    const std::lock_guard lock(mutex_);
    std::erase(ended_, &segment);
}

// Keeps copies for earlier segments. Values read by a scope from outside must not change, but the script cannot know
// the segments within a scope.
void BudgetRun::keep_for_earlier(Storage &storage)
{
    const std::lock_guard lock(mutex_);
    const NoRelief no_relief;  // a function may end a segment, which takes the lock
    Ref<Storage> copy;
    for (Recording *segment : ended_) segment->give_copy(storage, copy);
}

// Forgets the earlier segments, and marks the run as no longer open. From then on, other threads may walk it.
void BudgetRun::leave_earlier() noexcept
{
    {
        const std::lock_guard lock(mutex_);
        ended_.clear();
    }
    is_open_.store(false, std::memory_order_release);
}

// ---- Forward --------------------------------------------------------------------------------------------------

// Follows the plan at the call with this mark: the same plan goes on, or another plan that began with the same calls.
// If no plan fits, the run learns.
void BudgetRun::follow(uint64_t mark)
{
    const size_t i = profiler_.marks().size();
    const auto fits = [&](const KnownForward &known) {
        return i < known.marks.size() && known.marks[i] == mark;
    };
    if (!plan_ || fits(*plan_)) return;
    const auto other =
        std::ranges::find_if(known_, [&](const Known &known) { return fits(*known); });
    has_switched_ |= i > 0;
    plan_ = other == known_.end() ? nullptr : other->get();
}

// Chooses whether to cut before this call, and which results of the call to hold.
void BudgetRun::choose(const yoke_launch &launch)
{
    const size_t i = profiler_.marks().size();
    follow(profiler_.mark_of_next(launch));
    if (plan_) {
        if (plan_->plan.cuts[i]) cut();
        holds_ = plan_->plan.holds[i];
        holds_all_ = i + 1 < plan_->plan.holds.size() && plan_->profile.calls[i + 1].needs == i &&
                     plan_->plan.holds[i + 1];
        return;
    }
    holds_ = holds_all_ = false;
    if (profiler_.is_cut_due() && !thread_state().composing) cut();
}

// Runs `work`, which records a call. Without memory for the record, the run goes on, but gives later runs no profile.
template <class Work>
void BudgetRun::take_down(Work work)
{
    if (!is_whole_) return;
    try {
        work();
    } catch (const std::bad_alloc &) {
        is_whole_ = false;
        plan_ = nullptr;
    }
}

void BudgetRun::begin_call(const yoke_launch &launch, Device &device,
                           std::span<Storage *const> storages, size_t fresh)
{
    if (!device_) {
        device_ = &device;
        int64_t bytes = 0;
        for (size_t i = fresh; i < storages.size(); ++i)
            if (storages[i]) bytes += static_cast<int64_t>(storages[i]->bytes);
        meter_.start(device, bytes);
        profiler_.start(device);
    }
    if (is_whole_) choose(launch);
    if (&device != device_) holds_ = holds_all_ = true;  // memory of other devices is not counted
    take_down([&] {
        profiler_.begin_call(launch, storages, fresh, holds_, !plan_);
        meter_.begin_call();
    });
    clock_.start(device, !plan_);
}

void BudgetRun::end_call(const yoke_launch &launch, std::span<Storage *const> storages,
                         size_t fresh)
{
    const double seconds = clock_.stop(launch, *device_, !plan_);
    const bool holds_all = std::exchange(holds_all_, false);
    holds_ = false;
    take_down([&] {
        meter_.end_call();
        if (profiler_.end_call(launch, storages, fresh, seconds, holds_all))
            meter_.add_cheap_call();
    });
}

void BudgetRun::finish()
{
    const Ref<BudgetRun> alive = Ref<BudgetRun>::share(this);
    const ForwardEnd at_end(std::move(budget_));
    const Ref<Recording> ended = std::move(segment_);
    leave_earlier();
    if (ended.present()) ended->close();
    profiler_.end_forward(device_ && !plan_ && is_whole_);
    meter_.end_forward();
}

// Abandons a run that no caller can finish: its forward has no end, so the run never becomes known.
void BudgetRun::abandon() noexcept
{
    const ForwardEnd at_end(std::move(budget_));
    leave_earlier();
    segment_ = {};
}

// ---- After the step -------------------------------------------------------------------------------------------

// Returns the known forward with as many calls and the same last mark, or null. A mark stands for all calls before
// it, too.
Known BudgetRun::forward() const
{
    const std::vector<uint64_t> &marks = profiler_.marks();
    for (const Known &known : known_)
        if (known->marks.size() == marks.size() && known->marks.back() == marks.back())
            return known;
    return nullptr;
}

// Adds to a new profile of the same forward the facts seen only by a learning run, and each call's least time.
static void keep_what_is_known(const Profile &before, Profile &now)
{
    if (before.calls.size() != now.calls.size() || before.values.size() != now.values.size())
        return;
    for (size_t i = 0; i < now.calls.size(); ++i)
        now.calls[i].seconds = std::min(now.calls[i].seconds, before.calls[i].seconds);
    for (size_t v = 0; v < now.values.size(); ++v)
        now.values[v].last_alive = before.values[v].last_alive;
}

void BudgetRun::put_profile(KnownForward &into) const
{
    Profile profile = profiler_.profile();
    keep_what_is_known(into.profile, profile);
    meter_.put_unexplained(profile, explain(profile, profiler_.done()));
    into.profile = std::move(profile);
    into.marks = profiler_.marks();
}

}  // namespace yoke
