// offload_queue.h: data offloaded to host memory by checkpoint scopes, in the order of closing. Backward comes in
// reverse order, and brings back a scope's data while it walks another scope.
#pragma once

#include "core/tensor/offloaded.h"

#include <mutex>
#include <vector>

namespace yoke {

// Entry of a scope: its offloaded data. Later entries hold the entry; after the scope's end, the entry is empty.
class OffloadEntry final : public RefCounted {
public:
    OffloadEntry(std::vector<Ref<Offloaded>> offloaded, Ref<OffloadEntry> earlier)
        : offloaded_(std::move(offloaded)), earlier_(std::move(earlier))
    {
    }
    // Returns the entry before this entry in the queue; null: none.
    const Ref<OffloadEntry> &earlier() const noexcept { return earlier_; }
    std::vector<Ref<Offloaded>> offloaded();
    // Releases all data, at the scope's end.
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
