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

}  // namespace yoke
