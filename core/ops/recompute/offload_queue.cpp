#include "core/ops/recompute/offload_queue.h"

#include "core/base/immortal.h"

namespace yoke {

static OffloadQueue &offload_queue = immortal<OffloadQueue>();

std::vector<Ref<Offloaded>> OffloadEntry::offloaded()
{
    const std::lock_guard lock(mutex_);
    return offloaded_;
}

void OffloadEntry::clear() noexcept
{
    std::vector<Ref<Offloaded>> offloaded;
    const std::lock_guard lock(mutex_);
    offloaded_.swap(offloaded);
}

OffloadQueue &OffloadQueue::of_process()
{
    return offload_queue;
}

Ref<OffloadEntry> OffloadQueue::add(std::vector<Ref<Offloaded>> offloaded)
{
    const std::lock_guard lock(mutex_);
    // Entries without data at the end are skipped, so the queue is only as long as the offloaded data.
    while (last_.present() && last_->offloaded().empty()) {
        const Ref<OffloadEntry> before = last_->earlier();
        last_ = before;
    }
    last_ = Ref<OffloadEntry>::adopt(new OffloadEntry(std::move(offloaded), last_));
    return last_;
}

}  // namespace yoke
