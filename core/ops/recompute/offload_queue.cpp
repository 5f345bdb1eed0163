#include "core/ops/recompute/offload_queue.h"

#include "core/base/immortal.h"
#include "core/ops/recompute/recompute.h"

#include <unordered_map>

namespace yoke {

// ---- The queue ------------------------------------------------------------------------------------------------

namespace {

struct OffloadQueue {
    std::mutex mutex;
    Ref<OffloadEntry> last;
};
OffloadQueue &offload_queue = immortal<OffloadQueue>();

}  // namespace

Ref<OffloadEntry> OffloadEntry::add(std::vector<Ref<Offloaded>> offloaded)
{
    Ref<OffloadEntry> made = Ref<OffloadEntry>::adopt(new OffloadEntry(std::move(offloaded)));
    const std::lock_guard lock(offload_queue.mutex);
    // Those at the end that are gone are passed over, so that the queue is as long as what is offloaded.
    while (offload_queue.last.present() && offload_queue.last->offloaded().empty()) {
        const Ref<OffloadEntry> before = offload_queue.last->earlier();
        offload_queue.last = before;
    }
    made->earlier_ = std::exchange(offload_queue.last, made);
    return made;
}

Ref<OffloadEntry> OffloadEntry::earlier()
{
    const std::lock_guard lock(mutex_);
    return earlier_;
}

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

// ---- What a scope offloads ------------------------------------------------------------------------------------

// In place of what is held in the device's memory; where it cannot be, that stays.
void Scope::offload(Item &item)
{
    if (!item.held.present() || item.value->exposed.load(std::memory_order_relaxed)) return;
    if (Ref<Offloaded> offloaded = Offloaded::make(*item.held); offloaded.present()) {
        item.offloaded = std::move(offloaded);
        item.held = nullptr;
    }
}

// As the scope closes: what is still held, and what its calls read of earlier scopes.
void Scope::offload_all()
{
    std::vector<Ref<Offloaded>> all;
    std::unordered_map<const Storage *, Ref<Offloaded>> outside;
    for (Item &item : items_) {
        const Ref<Storage> held = item.held;
        if (offloads_ || item.must_offload) offload(item);
        if (!item.offloaded.present()) continue;
        all.push_back(item.offloaded);
        if (held.present() && item.is_foreign) outside[held.get()] = item.offloaded;
    }
    for (const Ref<LoggedCall> &call : offloads_ ? std::span<const Ref<LoggedCall>>(calls_)
                                                 : std::span<const Ref<LoggedCall>>()) {
        for (Source &source : call->sources()) {
            Storage *storage = source.outside.get();
            Origin *origin = storage ? storage->origin() : nullptr;
            if (!origin || origin->exposed.load(std::memory_order_relaxed) ||
                origin->version.load(std::memory_order_relaxed) != source.version)
                continue;
            Ref<Offloaded> &offloaded = outside[storage];
            if (!offloaded.present()) {
                offloaded = Offloaded::make(*storage);
                if (!offloaded.present()) continue;
                all.push_back(offloaded);
            }
            source.offloaded = offloaded;
            source.origin = Ref<Origin>::share(origin);
            source.outside = nullptr;
        }
    }
    if (!all.empty()) offload_entry_ = OffloadEntry::add(std::move(all));
}

}  // namespace yoke
