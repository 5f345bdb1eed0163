// reducer_list.h: the reducers of gradients over a group.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace yoke {

class Reducer;

// Living reducers. Any thread may call the functions.
class ReducerList {
public:
    // Adds a reducer, and returns its number in the group, from 1 on.
    int64_t add(std::weak_ptr<Reducer> reducer)
    {
        const std::lock_guard lock(mutex_);
        std::erase_if(all_, [](const auto &each) { return each.expired(); });
        all_.push_back(std::move(reducer));
        return ++count_;
    }
    std::vector<std::shared_ptr<Reducer>> living() const
    {
        const std::lock_guard lock(mutex_);
        std::vector<std::shared_ptr<Reducer>> living;
        for (const std::weak_ptr<Reducer> &each : all_)
            if (std::shared_ptr<Reducer> held = each.lock()) living.push_back(std::move(held));
        return living;
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::weak_ptr<Reducer>> all_;
    int64_t count_ = 0;
};

}  // namespace yoke
