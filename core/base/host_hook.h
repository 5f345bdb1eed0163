// host_hook.h: a function of the host program, called from any thread, and replaced as a whole.
#pragma once

#include "core/base/fork.h"
#include "core/base/refcount.h"
#include "yoke/types.h"

#include <atomic>
#include <mutex>
#include <utility>

namespace yoke {

template <class Fn>
class HostHook {
public:
    // Replaces the function. The drop of the former function runs once, after its last call has returned. fn may be
    // null.
    void set(Fn fn, void *user, yoke_drop_fn drop)
    {
        Ref<Holder> made;
        if (fn || drop) made = Ref<Holder>::adopt(new Holder(fn, user));
        Ref<Holder> former;  // released without the lock: its drop may call any function
        const std::lock_guard lock(mutex_);
        if (made.present()) made->drop = drop;
        former = std::exchange(holder_, std::move(made));
        is_set_.store(fn != nullptr, std::memory_order_release);
    }

    // Returns whether a function is set. Takes no lock, for frequent callers.
    bool is_set() const noexcept { return is_set_.load(std::memory_order_acquire); }

    // Calls the function with its user pointer first, with no lock held. Returns its result, or 0 without a function.
    template <class... Arguments>
    int32_t ask(Arguments... arguments)
    {
        if (!is_set()) return 0;
        Ref<Holder> now;
        {
            const std::lock_guard lock(mutex_);
            now = holder_;
        }
        return now.present() && now->fn ? now->fn(now->user, arguments...) : 0;
    }

private:
    // Function with its user pointer. A caller holds a reference, so drop waits for the last call.
    struct Holder final : RefCounted {
        Holder(Fn function, void *of) : fn(function), user(of) {}
        ~Holder() override
        {
            if (drop) drop(user);
        }
        const Fn fn;
        void *const user;
        yoke_drop_fn drop = nullptr;
    };

    Mutex mutex_{LockRank::kOther};
    Ref<Holder> holder_;
    std::atomic<bool> is_set_{false};
};

}  // namespace yoke
