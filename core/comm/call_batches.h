// call_batches.h: queued calls of a group, in batches of calls issued together.
#pragma once

#include "core/comm/pending_call.h"

#include <array>
#include <deque>
#include <iterator>
#include <utility>
#include <vector>

namespace yoke {

// Batches in their order. The thread that runs a batch gives its memory back, for a later batch: memory that another
// thread frees costs the caller's next allocation a lock. Its user holds a lock.
class CallBatches {
public:
    using Batch = std::vector<PendingCall>;

    bool empty() const noexcept { return batches_.empty(); }
    Batch &front() noexcept { return batches_.front(); }
    void push(PendingCalls calls)
    {
        Batch batch = spares_ > 0 ? std::move(spare_[--spares_]) : Batch();
        batch.assign(std::make_move_iterator(calls.begin()), std::make_move_iterator(calls.end()));
        batches_.push_back(std::move(batch));
    }
    Batch pop() noexcept
    {
        Batch first = std::move(batches_.front());
        batches_.pop_front();
        return first;
    }
    void give_back(Batch empty) noexcept
    {
        if (spares_ < spare_.size()) spare_[spares_++] = std::move(empty);
    }

private:
    std::deque<Batch> batches_;
    std::array<Batch, 8> spare_;  // empty
    size_t spares_ = 0;
};

}  // namespace yoke
