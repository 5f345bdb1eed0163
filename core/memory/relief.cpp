#include "core/memory/relief.h"

#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/base/lent.h"
#include "core/base/refcount.h"
#include "core/base/thread_state.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace yoke {

namespace {

struct Relief final : RefCounted {
    Relief(ReliefKind of, ReliefFn function, void *its) : kind(of), fn(function), user(its) {}
    ~Relief() override
    {
        if (drop) drop(user);
    }
    const ReliefKind kind;
    const ReliefFn fn;
    void *const user;
    yoke_drop_fn drop = nullptr;
    int64_t id = 0;
    std::atomic<bool> is_removed{false};  // a question under way may have it still
};

struct AllReliefs {
    Mutex mutex{LockRank::kOther};
    std::vector<Ref<Relief>> all;
    int64_t last_id = 0;
};
AllReliefs &reliefs = immortal<AllReliefs>();

thread_local bool is_asking __attribute__((tls_model("initial-exec"))) = false;

// Scope that sets aside the thread's modes of the present call: a walk over the tape, an open checkpoint scope,
// autocast. Its end restores the modes, whatever a script has opened and closed meanwhile.
class Aside {
public:
    explicit Aside(ThreadState &state) : state_(state), grad_disabled_(state.grad_disabled)
    {
        exchange();
        is_asking = true;
    }
    ~Aside()
    {
        exchange();
        state_.grad_disabled = grad_disabled_;
        if (autocast_) lent.drop_autocast(autocast_);
        if (scope_) lent.drop_scope(scope_);
        is_asking = false;
    }
    Aside(const Aside &) = delete;
    Aside &operator=(const Aside &) = delete;

private:
    void exchange()
    {
        std::swap(autocast_, state_.autocast);
        std::swap(scope_, state_.scope);
        std::swap(scope_aside_, state_.scope_aside);
        std::swap(replays_, state_.replays);
        std::swap(composing_, state_.composing);
    }

    ThreadState &state_;
    const int32_t grad_disabled_;
    Autocast *autocast_ = nullptr;
    Scope *scope_ = nullptr, *scope_aside_ = nullptr;
    Replays *replays_ = nullptr;
    const OpDef *composing_ = nullptr;
};

}  // namespace

NoRelief::NoRelief() noexcept : before_(std::exchange(is_asking, true)) {}

NoRelief::~NoRelief()
{
    is_asking = before_;
}

int64_t add_relief(ReliefKind kind, ReliefFn fn, void *user, yoke_drop_fn drop)
{
    Ref<Relief> made = Ref<Relief>::adopt(new Relief(kind, fn, user));
    const std::lock_guard lock(reliefs.mutex);
    reliefs.all.push_back(made);
    made->drop = drop;
    made->id = ++reliefs.last_id;
    return made->id;
}

bool remove_relief(ReliefKind kind, int64_t id)
{
    Ref<Relief> removed;  // released without the lock: its drop may call any function
    const std::lock_guard lock(reliefs.mutex);
    const auto found = std::ranges::find_if(
        reliefs.all, [&](const Ref<Relief> &each) { return each->id == id && each->kind == kind; });
    if (found == reliefs.all.end()) return false;
    removed = std::move(*found);
    removed->is_removed.store(true, std::memory_order_release);
    reliefs.all.erase(found);
    return true;
}

bool ask_for_relief(ReliefKind kind, Device &device, uint64_t bytes) noexcept
{
    ThreadState *state = try_thread_state();
    if (is_asking || !state) return false;
    std::vector<Ref<Relief>> now;
    try {
        const std::lock_guard lock(reliefs.mutex);
        for (const Ref<Relief> &each : reliefs.all)
            if (each->kind == kind) now.push_back(each);
    } catch (const std::bad_alloc &) {
        return false;
    }
    if (now.empty()) return false;
    const Aside aside(*state);
    const auto asked =
        static_cast<int64_t>(std::min<uint64_t>(bytes, std::numeric_limits<int64_t>::max()));
    bool helped = false;
    for (const Ref<Relief> &each : now)
        if (!each->is_removed.load(std::memory_order_acquire))
            helped |= each->fn(each->user, &device, asked) != 0;
    return helped;
}

}  // namespace yoke
