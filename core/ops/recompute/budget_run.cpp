// What a run of a memory budget takes down in forward.
#include "core/ops/recompute/budget_run.h"

#include "core/autograd/node.h"
#include "core/memory/memory.h"
#include "core/memory/relief.h"
#include "core/ops/recompute/budget.h"
#include "core/ops/recompute/remake.h"

#include <algorithm>
#include <atomic>
#include <new>

namespace yoke {

namespace {

// Of an op that is made of a result alone, which no forward runs: so much an activation of one core gives, and of a
// card.
constexpr double kBytesASecond = 1e10, kBytesASecondOfCards = 1e12;

std::atomic<uint64_t> runs_made{0};

// What a segment holds is what its run says of the call that runs.
class AsPlanned final : public Policy {
public:
    explicit AsPlanned(const BudgetRun &run) : run_(run) {}
    bool holds(const LoggedCall &) const noexcept override { return run_.holds(); }
    bool holds_all() const noexcept override { return run_.holds_all(); }

private:
    const BudgetRun &run_;
};

// Tells a budget that its forward has ended, however that goes.
class ForwardEnd {
public:
    explicit ForwardEnd(Ref<MemoryBudget> budget) : budget_(std::move(budget)) {}
    ~ForwardEnd() { budget_->end(); }
    ForwardEnd(const ForwardEnd &) = delete;
    ForwardEnd &operator=(const ForwardEnd &) = delete;

private:
    const Ref<MemoryBudget> budget_;
};

uint64_t mixed(uint64_t mark, uint64_t more)
{
    mark = (mark ^ more) * 0x9e3779b97f4a7c15u;
    return mark ^ mark >> 29;
}

// Ops, dtypes and shapes; the rest may change from step to step.
uint64_t mark_behind(uint64_t mark, const yoke_launch &launch)
{
    mark = mixed(
        mark, static_cast<uint64_t>(launch.op) << 32 | static_cast<uint32_t>(launch.operand_count));
    for (int32_t i = 0; i < launch.operand_count; ++i) {
        const yoke_operand &o = launch.operands[i];
        mark = mixed(mark, static_cast<uint64_t>(o.dtype) << 32 | static_cast<uint32_t>(o.ndim));
        mark = mixed(mark, o.flags & (YOKE_OPERAND_READ | YOKE_OPERAND_WRITE));
        for (int32_t axis = 0; axis < o.ndim; ++axis)
            mark = mixed(mark, static_cast<uint64_t>(o.shape[axis]));
    }
    return mark;
}

}  // namespace

BudgetRun::BudgetRun(Ref<MemoryBudget> budget, std::vector<Known> known)
    : budget_(std::move(budget)),
      number_(runs_made.fetch_add(1, std::memory_order_relaxed) + 1),
      known_(std::move(known))
{
    if (!known_.empty()) plan_ = known_.front().get();
    segment_ = make_segment();
}

BudgetRun::~BudgetRun() = default;

Ref<Recording> BudgetRun::make_segment()
{
    return Ref<Recording>::adopt(new Recording({}, Ref<AsPlanned>::adopt(new AsPlanned(*this)),
                                               false, Ref<BudgetRun>::share(this)));
}

void BudgetRun::cut()
{
    const Ref<Recording> ended = std::exchange(segment_, make_segment());
    segment_begin_ = static_cast<uint32_t>(profile_.calls.size());
    dropped_ = 0;
    ++figures_.cuts;
    {
        const std::lock_guard lock(ended_mutex_);
        ended_.push_back(ended.get());
    }
    ended->close();
}

void BudgetRun::forget(const Recording &segment) noexcept
{
    const std::lock_guard lock(ended_mutex_);
    std::erase(ended_, &segment);
}

// What a scope reads from outside may not change, but where the segments of one scope are, it cannot know.
void BudgetRun::keep_for_earlier(Storage &storage)
{
    const std::lock_guard lock(ended_mutex_);
    const NoRelief no_relief;  // a function may end a segment, which takes the lock
    Ref<Storage> copy;
    for (Recording *segment : ended_) segment->give_copy(storage, copy);
}

// ---- Forward --------------------------------------------------------------------------------------------------

// The call has come that this mark is of: the plan goes on, or another one that began with the same calls.
void BudgetRun::follow(uint64_t mark)
{
    const size_t i = marks_.size();
    const auto fits = [&](const KnownForward &known) {
        return i < known.marks.size() && known.marks[i] == mark;
    };
    if (!plan_ || fits(*plan_)) return;
    const auto other =
        std::ranges::find_if(known_, [&](const Known &known) { return fits(*known); });
    has_switched_ |= i > 0;
    plan_ = other == known_.end() ? nullptr : other->get();
}

// Whether there is a cut before this call, and what is held of it.
void BudgetRun::choose(const yoke_launch &launch)
{
    const size_t i = marks_.size();
    follow(mark_behind(i ? marks_.back() : 0, launch));
    if (plan_) {
        if (plan_->plan.cuts[i]) cut();
        holds_ = plan_->plan.holds[i];
        holds_all_ = i + 1 < plan_->plan.holds.size() && plan_->profile.calls[i + 1].needs == i &&
                     plan_->plan.holds[i + 1];
        return;
    }
    holds_ = holds_all_ = false;
    if (dropped_ > crossing_ && !thread_state().composing) cut();
}

uint32_t BudgetRun::value_in(const Storage *storage) const
{
    if (!storage) return kNever;
    const auto *value = static_cast<const Value *>(storage->origin());
    return value && value->run == number_ ? value->profiled : kNever;
}

void BudgetRun::begin_call(const yoke_launch &launch, Device &device,
                           std::span<Storage *const> storages, size_t fresh)
{
    if (!device_) {
        device_ = &device;
        base_ = memory_stats(device).allocated;
        for (size_t i = fresh; i < storages.size(); ++i)
            if (storages[i]) base_ -= static_cast<int64_t>(storages[i]->bytes);
        lap_peak(device);
    }
    if (is_whole_) choose(launch);
    if (!plan_ && is_whole_) note_deaths();
    if (&device != device_) holds_ = holds_all_ = true;  // whose memory is not looked at
    take_down([&] {
        marks_.push_back(mark_behind(marks_.empty() ? 0 : marks_.back(), launch));
        add_call();
        add_reads(launch, storages, fresh);
    });
    clock_.start(device, !plan_);
}

// Where there is no memory for it, the run goes on and is of no use to later ones.
template <class Work>
void BudgetRun::take_down(Work work)
{
    if (!is_whole_) return;
    const std::lock_guard lock(mutex_);
    try {
        work();
    } catch (const std::bad_alloc &) {
        is_whole_ = false;
        plan_ = nullptr;
    }
}

void BudgetRun::add_call()
{
    ProfiledCall call;
    call.reads = call.makes = call.end = static_cast<uint32_t>(profile_.operands.size());
    profile_.calls.push_back(call);
    measured_.push_back({next_sequence_number()});
    done_.cuts.push_back(segment_begin_ + 1 == profile_.calls.size() && segment_begin_);
    done_.holds.push_back(holds_);
}

// Of what the script alone has.
void BudgetRun::note_deaths()
{
    std::erase_if(alive_, [&](uint32_t v) {
        if (!values_[v]->gone.load(std::memory_order_relaxed)) return false;
        profile_.values[v].last_alive = last_call();
        values_[v] = {};
        return true;
    });
}

// What is changed in place is of the call's results, and is not held for itself; nor cut from what made it.
void BudgetRun::add_reads(const yoke_launch &launch, std::span<Storage *const> storages,
                          size_t fresh)
{
    const uint32_t at = last_call();
    std::vector<uint32_t> changed;
    for (size_t i = 0; i < fresh; ++i) {
        const uint32_t v = value_in(storages[i]);
        if (v == kNever) continue;
        ProfiledValue &value = profile_.values[v];
        value.last_read = value.last_alive = at;
        if (value.maker < segment_begin_) note_crossing(v);
        if (!(launch.operands[i].flags & YOKE_OPERAND_WRITE)) {
            profile_.operands.push_back(v);
            continue;
        }
        changed.push_back(v);
        profile_.calls[value.maker].can_hold = profile_.calls[at].can_hold = false;
        for (uint32_t call = value.maker + 1; call <= at; ++call)
            profile_.calls[call].can_cut = false;
    }
    profile_.calls[at].makes = static_cast<uint32_t>(profile_.operands.size());
    profile_.operands.insert(profile_.operands.end(), changed.begin(), changed.end());
    profile_.calls[at].end = static_cast<uint32_t>(profile_.operands.size());
}

void BudgetRun::note_crossing(uint32_t v)
{
    if (is_crossing_[v]) return;
    is_crossing_[v] = 1;
    crossing_ += static_cast<int64_t>(profile_.values[v].bytes);
}

void BudgetRun::add_result(const Storage &storage)
{
    auto *made = static_cast<Value *>(storage.origin());
    if (!made || !storage.bytes || storage.device != device_) return;
    const auto v = static_cast<uint32_t>(profile_.values.size());
    const uint32_t at = last_call();
    made->run = number_;
    made->profiled = v;
    ProfiledValue value;
    value.bytes = storage.capacity();
    value.maker = value.last_read = value.last_alive = at;
    profile_.values.push_back(value);
    is_crossing_.push_back(0);
    if (!plan_) {
        values_.resize(v);
        values_.push_back(Ref<Value>::share(made));
        alive_.push_back(v);
    }
    profile_.operands.push_back(v);
    profile_.calls[at].end = static_cast<uint32_t>(profile_.operands.size());
}

void BudgetRun::end_call(const yoke_launch &launch, std::span<Storage *const> storages,
                         size_t fresh)
{
    const double seconds = clock_.stop(launch, *device_, !plan_);
    const bool holds_all = std::exchange(holds_all_, false);
    holds_ = false;
    take_down([&] {
        profile_.calls.back().seconds = seconds;
        measured_.back().forward = lap();
        Remake remake;
        const bool has_cheap = find_remake(launch, *device_, remake) && remake.to >= fresh;
        for (size_t i = fresh; i < storages.size(); ++i)
            if (storages[i] && !(has_cheap && i == remake.to)) add_result(*storages[i]);
        if (has_cheap) add_cheap(*storages[remake.from], *storages[remake.to], holds_all);
    });
}

// A result that follows from another of the call, as a call of its own.
void BudgetRun::add_cheap(const Storage &from, const Storage &to, bool is_held)
{
    const uint32_t v = value_in(&from);
    if (v == kNever) return;
    marks_.push_back(mixed(marks_.back(), 1));
    add_call();
    done_.holds.back() = is_held;
    const uint32_t at = last_call();
    profile_.calls[at].seconds =
        static_cast<double>(to.bytes) / (device_->host ? kBytesASecond : kBytesASecondOfCards);
    profile_.calls[at].needs = at - 1;
    profile_.calls[at].can_cut = false;
    measured_[at].forward = measured_[at - 1].forward;
    profile_.operands.push_back(v);
    profile_.values[v].last_read = at;
    profile_.calls[at].makes = profile_.calls[at].end =
        static_cast<uint32_t>(profile_.operands.size());
    add_result(to);
}

void BudgetRun::note_saved(const Storage &storage)
{
    const uint32_t v = value_in(&storage);
    if (v == kNever || !is_whole_) return;
    ProfiledValue &value = profile_.values[v];
    const uint32_t at = last_call();
    if (value.first_saver == kNever) {
        value.first_saver = at;
        dropped_ += done_.holds[value.maker] ? 0 : static_cast<int64_t>(value.bytes);
    }
    value.last_saver = at;
    if (value.maker < segment_begin_) note_crossing(v);
}

void BudgetRun::note_imported(const Storage &storage)
{
    if (value_in(&storage) != kNever) static_cast<Value *>(storage.origin())->run = 0;
}

void BudgetRun::finish()
{
    const Ref<BudgetRun> alive = Ref<BudgetRun>::share(this);
    const ForwardEnd at_end(std::move(budget_));
    const Ref<Recording> ended = std::move(segment_);
    leave_earlier();
    if (ended.present()) ended->close();
    if (device_ && !plan_ && is_whole_) {
        note_deaths();
        for (const uint32_t v : alive_)  // what crosses a cut lives by that
            if (!is_crossing_[v])
                profile_.values[v].last_alive = static_cast<uint32_t>(profile_.calls.size());
    }
    values_.clear();
    alive_.clear();
    const std::lock_guard lock(mutex_);
    end_ = next_sequence_number();
    if (!device_) return;
    lap();
    figures_.held = taken();
}

// From now on other threads may walk it.
void BudgetRun::leave_earlier() noexcept
{
    {
        const std::lock_guard lock(ended_mutex_);
        ended_.clear();
    }
    is_open_.store(false, std::memory_order_release);
}

void BudgetRun::abandon() noexcept
{
    const ForwardEnd at_end(std::move(budget_));
    leave_earlier();
    const std::lock_guard lock(mutex_);
    is_whole_ = false;
    segment_ = {};
}

}  // namespace yoke
