// offload_queue.h: what checkpoint scopes have offloaded to host memory, in the order in which they closed: backward
// comes the other way and brings one scope's back while another's is walked.
#pragma once

#include "core/tensor/offloaded.h"

#include <mutex>
#include <vector>

namespace yoke {

// What one scope has offloaded. The queue holds no scope, and none of it that is gone.
class OffloadEntry final : public RefCounted {
public:
    // Makes an entry behind the last one of the process.
    static Ref<OffloadEntry> add(std::vector<Ref<Offloaded>> offloaded);
    // What was offloaded before; null: nothing that is still there.
    Ref<OffloadEntry> earlier();
    std::vector<Ref<Offloaded>> offloaded();
    // The scope goes.
    void clear() noexcept;

private:
    explicit OffloadEntry(std::vector<Ref<Offloaded>> offloaded) : offloaded_(std::move(offloaded))
    {
    }

    std::mutex mutex_;
    std::vector<Ref<Offloaded>> offloaded_;
    Ref<OffloadEntry> earlier_;
};

}  // namespace yoke
