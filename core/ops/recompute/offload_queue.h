// offload_queue.h: what checkpoint scopes have offloaded to host memory, in the order in which they closed: backward
// comes the other way and brings one scope's back while another's is walked.
#pragma once

#include "core/tensor/offloaded.h"

#include <mutex>
#include <vector>

namespace yoke {

// What one scope has offloaded. The entry outlives the scope; then it has nothing.
class OffloadEntry final : public RefCounted {
public:
    OffloadEntry(std::vector<Ref<Offloaded>> offloaded, Ref<OffloadEntry> earlier)
        : offloaded_(std::move(offloaded)), earlier_(std::move(earlier))
    {
    }
    // The entry before this one in the queue; null: none.
    const Ref<OffloadEntry> &earlier() const noexcept { return earlier_; }
    std::vector<Ref<Offloaded>> offloaded();
    // The scope goes.
    void clear() noexcept;

private:
    std::mutex mutex_;
    std::vector<Ref<Offloaded>> offloaded_;
    const Ref<OffloadEntry> earlier_;
};

// The entries of all scopes of the process. Any thread adds one.
class OffloadQueue {
public:
    static OffloadQueue &of_process();
    Ref<OffloadEntry> add(std::vector<Ref<Offloaded>> offloaded);

private:
    std::mutex mutex_;
    Ref<OffloadEntry> last_;
};

}  // namespace yoke
