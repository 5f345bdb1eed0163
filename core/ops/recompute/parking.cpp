#include "core/ops/recompute/parking.h"

#include "core/base/immortal.h"
#include "core/ops/recompute/recompute.h"

#include <unordered_map>

namespace yoke {

// ---- The row --------------------------------------------------------------------------------------------------

namespace {

struct Row {
    std::mutex mutex;
    Ref<Parking> last;
};
Row &row = immortal<Row>();

}  // namespace

Ref<Parking> Parking::add(std::vector<Ref<Parked>> parked)
{
    Ref<Parking> made = Ref<Parking>::adopt(new Parking(std::move(parked)));
    const std::lock_guard lock(row.mutex);
    // Those at the end that are gone are passed over, so that the row is as long as what is parked.
    while (row.last.present() && row.last->parked().empty()) {
        const Ref<Parking> before = row.last->earlier();
        row.last = before;
    }
    made->earlier_ = std::exchange(row.last, made);
    return made;
}

Ref<Parking> Parking::earlier()
{
    const std::lock_guard lock(mutex_);
    return earlier_;
}

std::vector<Ref<Parked>> Parking::parked()
{
    const std::lock_guard lock(mutex_);
    return parked_;
}

void Parking::clear() noexcept
{
    std::vector<Ref<Parked>> parked;
    const std::lock_guard lock(mutex_);
    parked_.swap(parked);
}

// ---- What a scope parks ---------------------------------------------------------------------------------------

// In place of what is held in the device's memory; where it cannot be, that stays.
void Scope::park(Item &item)
{
    if (!item.held.present() || item.value->exposed.load(std::memory_order_relaxed)) return;
    if (Ref<Parked> parked = Parked::make(*item.held); parked.present()) {
        item.parked = std::move(parked);
        item.held = nullptr;
    }
}

// As the scope closes: what is still held, and what its calls read of earlier scopes.
void Scope::park_all()
{
    std::vector<Ref<Parked>> all;
    std::unordered_map<const Storage *, Ref<Parked>> outside;
    for (Item &item : items_) {
        const Ref<Storage> held = item.held;
        if (offloads_ || item.parks) park(item);
        if (!item.parked.present()) continue;
        all.push_back(item.parked);
        if (held.present() && item.is_foreign) outside[held.get()] = item.parked;
    }
    for (const Ref<LoggedCall> &call : offloads_ ? std::span<const Ref<LoggedCall>>(calls_)
                                                 : std::span<const Ref<LoggedCall>>()) {
        for (Source &source : call->sources()) {
            Storage *storage = source.outside.get();
            Origin *origin = storage ? storage->origin() : nullptr;
            if (!origin || origin->exposed.load(std::memory_order_relaxed) ||
                origin->version.load(std::memory_order_relaxed) != source.version)
                continue;
            Ref<Parked> &parked = outside[storage];
            if (!parked.present()) {
                parked = Parked::make(*storage);
                if (!parked.present()) continue;
                all.push_back(parked);
            }
            source.parked = parked;
            source.origin = Ref<Origin>::share(origin);
            source.outside = nullptr;
        }
    }
    if (!all.empty()) parking_ = Parking::add(std::move(all));
}

}  // namespace yoke
