#include "core/ops/recompute/forward_profiler.h"

#include "core/ops/recompute/remake.h"

#include <atomic>

namespace yoke {

namespace {

// Speed of an op computed from a result alone, which no forward runs: the speed of an activation on a single core,
// and on a card.
constexpr double kBytesASecond = 1e10, kBytesASecondOfCards = 1e12;

std::atomic<uint64_t> profilers_made{0};

uint64_t mixed(uint64_t mark, uint64_t more)
{
    mark = (mark ^ more) * 0x9e3779b97f4a7c15u;
    return mark ^ mark >> 29;
}

}  // namespace

ForwardProfiler::ForwardProfiler()
    : number_(profilers_made.fetch_add(1, std::memory_order_relaxed) + 1)
{
}

// Hashes only fields that are the same in each step; other fields of a launch may change from step to step.
uint64_t ForwardProfiler::mark_of_next(const yoke_launch &launch) const
{
    uint64_t mark =
        mixed(marks_.empty() ? 0 : marks_.back(),
              static_cast<uint64_t>(launch.op) << 32 | static_cast<uint32_t>(launch.operand_count));
    for (int32_t i = 0; i < launch.operand_count; ++i) {
        const yoke_operand &o = launch.operands[i];
        mark = mixed(mark, static_cast<uint64_t>(o.dtype) << 32 | static_cast<uint32_t>(o.ndim));
        mark = mixed(mark, o.flags & (YOKE_OPERAND_READ | YOKE_OPERAND_WRITE));
        for (int32_t axis = 0; axis < o.ndim; ++axis)
            mark = mixed(mark, static_cast<uint64_t>(o.shape[axis]));
    }
    return mark;
}

// ---- Around a call --------------------------------------------------------------------------------------------

uint32_t ForwardProfiler::value_in(const Storage *storage) const
{
    if (!storage) return kNever;
    const auto *value = static_cast<const Value *>(storage->origin());
    return value && value->profiler == number_ ? value->profiled : kNever;
}

void ForwardProfiler::begin_call(const yoke_launch &launch, std::span<Storage *const> storages,
                                 size_t fresh, bool is_held, bool learns)
{
    learns_ = learns;
    if (learns) note_deaths();
    add_call(mark_of_next(launch), is_held);
    add_reads(launch, storages, fresh);
}

void ForwardProfiler::add_call(uint64_t mark, bool is_held)
{
    ProfiledCall call;
    call.reads = call.makes = call.end = static_cast<uint32_t>(profile_.operands.size());
    marks_.push_back(mark);
    profile_.calls.push_back(call);
    done_.cuts.push_back(segment_begin_ + 1 == profile_.calls.size() && segment_begin_);
    done_.holds.push_back(is_held);
}

// Adds the operands of a call. A value changed in place belongs to the call's results. It is not held by itself, and
// no cut separates it from its maker.
void ForwardProfiler::add_reads(const yoke_launch &launch, std::span<Storage *const> storages,
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

bool ForwardProfiler::end_call(const yoke_launch &launch, std::span<Storage *const> storages,
                               size_t fresh, double seconds, bool holds_cheap)
{
    profile_.calls.back().seconds = seconds;
    Remake remake;
    const bool has_cheap = find_remake(launch, *device_, remake) && remake.to >= fresh;
    for (size_t i = fresh; i < storages.size(); ++i)
        if (storages[i] && !(has_cheap && i == remake.to)) add_result(*storages[i]);
    if (!has_cheap || value_in(storages[remake.from]) == kNever) return false;
    add_cheap(*storages[remake.from], *storages[remake.to], holds_cheap);
    return true;
}

void ForwardProfiler::add_result(const Storage &storage)
{
    auto *made = static_cast<Value *>(storage.origin());
    if (!made || !storage.bytes || storage.device != device_) return;
    const auto v = static_cast<uint32_t>(profile_.values.size());
    const uint32_t at = last_call();
    made->profiler = number_;
    made->profiled = v;
    ProfiledValue value;
    value.bytes = storage.capacity();
    value.maker = value.last_read = value.last_alive = at;
    profile_.values.push_back(value);
    is_crossing_.push_back(0);
    if (learns_) {
        values_.resize(v);
        values_.push_back(Ref<Value>::share(made));
        alive_.push_back(v);
    }
    profile_.operands.push_back(v);
    profile_.calls[at].end = static_cast<uint32_t>(profile_.operands.size());
}

// Adds a result that follows from another result, as a call of its own.
void ForwardProfiler::add_cheap(const Storage &from, const Storage &to, bool is_held)
{
    const uint32_t v = value_in(&from);
    add_call(mixed(marks_.back(), 1), is_held);
    const uint32_t at = last_call();
    profile_.calls[at].seconds =
        static_cast<double>(to.bytes) / (device_->host ? kBytesASecond : kBytesASecondOfCards);
    profile_.calls[at].needs = at - 1;
    profile_.calls[at].can_cut = false;
    profile_.operands.push_back(v);
    profile_.values[v].last_read = at;
    profile_.calls[at].makes = profile_.calls[at].end =
        static_cast<uint32_t>(profile_.operands.size());
    add_result(to);
}

// ---- Between calls --------------------------------------------------------------------------------------------

// Notes the last call of values whose memory has been released since: the script has them no more.
void ForwardProfiler::note_deaths()
{
    std::erase_if(alive_, [&](uint32_t v) {
        if (!values_[v]->gone.load(std::memory_order_relaxed)) return false;
        profile_.values[v].last_alive = last_call();
        values_[v] = {};
        return true;
    });
}

void ForwardProfiler::note_crossing(uint32_t v)
{
    if (is_crossing_[v]) return;
    is_crossing_[v] = 1;
    crossing_ += static_cast<int64_t>(profile_.values[v].bytes);
}

void ForwardProfiler::note_saved(const Storage &storage)
{
    const uint32_t v = value_in(&storage);
    if (v == kNever) return;
    ProfiledValue &value = profile_.values[v];
    const uint32_t at = last_call();
    if (value.first_saver == kNever) {
        value.first_saver = at;
        dropped_ += done_.holds[value.maker] ? 0 : static_cast<int64_t>(value.bytes);
    }
    value.last_saver = at;
    if (value.maker < segment_begin_) note_crossing(v);
}

void ForwardProfiler::note_imported(const Storage &storage)
{
    if (value_in(&storage) != kNever) static_cast<Value *>(storage.origin())->profiler = 0;
}

void ForwardProfiler::note_cut()
{
    segment_begin_ = static_cast<uint32_t>(profile_.calls.size());
    dropped_ = 0;
}

void ForwardProfiler::end_forward(bool has_learned)
{
    if (has_learned) {
        note_deaths();
        for (const uint32_t v : alive_)  // a crossing value lives because of the cut
            if (!is_crossing_[v])
                profile_.values[v].last_alive = static_cast<uint32_t>(profile_.calls.size());
    }
    values_.clear();
    alive_.clear();
}

}  // namespace yoke
