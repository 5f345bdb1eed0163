#include "core/memory/guards.h"

#include "core/base/immortal.h"
#include "core/memory/device_memory.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>

namespace yoke {

namespace {

// The lock of all guards: these are few, and each call holds the lock for a moment.
struct GuardsLock {
    Mutex mutex{LockRank::kOther};
};
GuardsLock &guards_lock = immortal<GuardsLock>();

// Puts the fence among the guards, unless the fence is among them. Returns no guards, except if so many stand here
// that some may be reached: then takes out and returns all.
Guards put_guard(Guards *&guards, Ref<Fence> &fence)
{
    constexpr size_t kMostUnasked = 16;
    const std::lock_guard lock(guards_lock.mutex);
    if (!guards) {
        guards = new Guards(1, fence);
        return {};
    }
    for (const Ref<Fence> &known : *guards)
        if (known.get() == fence.get()) return {};
    guards->push_back(std::move(fence));
    const bool asks = guards->size() >= kMostUnasked && std::has_single_bit(guards->size());
    return asks ? std::exchange(*guards, {}) : Guards();
}

}  // namespace

bool drop_reached(Guards &guards) noexcept
{
    std::erase_if(guards, [](const Ref<Fence> &fence) {
        try {
            return is_reached(*fence);
        } catch (const std::exception &) {
            return false;
        }
    });
    return guards.empty();
}

void add_guard(Guards *&guards, Ref<Fence> fence)
{
    Guards asked = put_guard(guards, fence);
    if (asked.empty()) return;
    drop_reached(asked);
    try {
        const std::lock_guard lock(guards_lock.mutex);
        guards->insert(guards->end(), asked.begin(), asked.end());
    } catch (...) {
        wait_for(asked);
        throw;
    }
}

Guards take_guards(Guards *&guards) noexcept
{
    const std::unique_ptr<Guards> taken(std::exchange(guards, nullptr));
    return taken ? std::move(*taken) : Guards();
}

void wait_for(const Guards &guards) noexcept
{
    for (const Ref<Fence> &fence : guards) {
        if (is_left_behind(*fence)) continue;
        const Device &device = fence->device;
        tell_wait(device, device.backend->event_synchronize(device.handle, fence->event));
    }
}

}  // namespace yoke
