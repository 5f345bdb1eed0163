#include "core/comm/record.h"

#include <chrono>

namespace yoke {

uint64_t CallRecords::add(CallRecord record)
{
    if (ring_.size() < kMost)
        ring_.push_back(std::move(record));
    else
        ring_[count_ % kMost] = std::move(record);
    return count_++;
}

CallRecord *CallRecords::find(uint64_t number)
{
    if (number >= count_ || count_ - number > kMost) return nullptr;
    return &ring_[number % kMost];
}

std::vector<CallRecord> CallRecords::all() const
{
    if (ring_.size() < kMost) return ring_;
    const auto oldest = ring_.begin() + static_cast<ptrdiff_t>(count_ % kMost);
    std::vector<CallRecord> found(oldest, ring_.end());
    found.insert(found.end(), ring_.begin(), oldest);
    return found;
}

double monotonic_seconds() noexcept
{
    using Seconds = std::chrono::duration<double>;
    return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

StoreCall::Scope::Scope(StoreCall &of, const char *call) : of_(of)
{
    const Place place{call, monotonic_seconds(), script_line()};
    const std::lock_guard lock(of.mutex_);
    of.place_ = place;
}

StoreCall::Scope::~Scope()
{
    const std::lock_guard lock(of_.mutex_);
    of_.place_.call = nullptr;
}

StoreCall::Place StoreCall::place() const
{
    const std::lock_guard lock(mutex_);
    return place_;
}

}  // namespace yoke
