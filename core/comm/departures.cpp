#include "core/comm/departures.h"

#include <algorithm>

namespace yoke {

void Departures::note_gone(int32_t rank, bool with_farewell) noexcept
{
    const std::lock_guard lock(mutex_);
    gone_[rank] = with_farewell;
    changed_.notify_all();
}

std::optional<bool> Departures::has_gone(int32_t rank) const noexcept
{
    const std::lock_guard lock(mutex_);
    const auto gone = gone_.find(rank);
    return gone == gone_.end() ? std::nullopt : std::optional(gone->second);
}

size_t Departures::count_dead() const noexcept
{
    const std::lock_guard lock(mutex_);
    return static_cast<size_t>(std::ranges::count_if(
        gone_, [](const auto &each) { return each.first >= 0 && !each.second; }));
}

void Departures::await_any(std::initializer_list<int32_t> ranks,
                           std::chrono::milliseconds most) const
{
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, most, [&] {
        return std::ranges::any_of(ranks, [this](int32_t each) { return gone_.contains(each); });
    });
}

}  // namespace yoke
