// offload_queue.h: what checkpoint scopes have offloaded to host memory, in the order in which they closed: backward
// comes the other way and brings one scope's back while another's is walked.
#pragma once

#include "core/tensor/offloaded.h"

#include <mutex>
#include <vector>

namespace yoke {

// Entry of one scope: what it has offloaded. Later entries hold the entry, which has nothing once the scope is gone.
class OffloadEntry final : public RefCounted {
public:
    OffloadEntry(std::vector<Ref<Offloaded>> offloaded, Ref<OffloadEntry> earlier)
        : offloaded_(std::move(offloaded)), earlier_(std::move(earlier))
    {
    }
    // Returns the entry before this one in the queue; null: none.
    const Ref<OffloadEntry> &earlier() const noexcept { return earlier_; }
    std::vector<Ref<Offloaded>> offloaded();
    // Lets go of all, as the scope goes.
    void clear() noexcept;

private:
    std::mutex mutex_;
    std::vector<Ref<Offloaded>> offloaded_;
    const Ref<OffloadEntry> earlier_;
};

// Queue of the entries of all scopes of the process. Any thread adds one.
class OffloadQueue {
public:
    static OffloadQueue &of_process();
    Ref<OffloadEntry> add(std::vector<Ref<Offloaded>> offloaded);

private:
    std::mutex mutex_;
    Ref<OffloadEntry> last_;
};

}  // namespace yoke
