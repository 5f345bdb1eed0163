// scope.h: checkpoint scopes, opened and closed by the program: results of the ops in a scope are dropped, and
// recomputed on request of backward. Scopes nest.
//
// A scope has a recording of its own (core/ops/recompute/recording.h). A scope of a memory budget, and each scope
// within, has the budget's run instead, which makes a row of recordings (core/ops/recompute/budget_run.h).
#pragma once

#include "core/base/thread_state.h"
#include "core/ops/recompute/recording.h"

#include <atomic>
#include <cstdint>

namespace yoke {

class MemoryBudget;  // core/ops/recompute/budget.h

// Scope of a program. A scope is in force in a single thread at a time. Only this thread records, so there is no
// lock. Handles may be given up in any thread.
class Scope final : public RefCounted {
public:
    // Opens a scope in the calling thread, within the scope in force there. `offloads`: held memory, and memory of
    // earlier scopes, waits in host memory.
    static Ref<Scope> open(Ref<Policy> policy, bool offloads = false);
    // Opens a scope of a budget. Within a scope of a budget, everything belongs to the outer budget; within another
    // scope, the new scope holds nothing. Raises STATE while another scope of this budget is open.
    static Ref<Scope> open(Ref<MemoryBudget> budget, const char *call);
    // Closes the scope. Raises STATE unless it is the innermost scope of the calling thread and has no open inner
    // scope. Coroutines of the host program may have set aside an inner scope.
    void close(const char *call);
    // Counts the host program's handles to the scope. If the scope is in force in the calling thread, releasing the
    // last handle closes the scope with its inner scopes. If an inner scope was set aside, the scope closes right
    // after this inner scope.
    void retain_handle() noexcept { handles_.fetch_add(1, std::memory_order_relaxed); }
    void release_handle(const char *call) noexcept;
    bool is_open() const noexcept { return !closed_.load(std::memory_order_acquire); }

    static Scope *of_thread() noexcept
    {
        const ThreadState *state = known_thread_state();
        return state ? state->scope : nullptr;
    }
    // Returns whether a scope recording into `recording` is in force in the calling thread, perhaps behind inner
    // scopes or set aside by a walk.
    static bool is_at_hand(const Recording &recording) noexcept;

    // Puts the scope in force in a thread; leave() ends this. Raises STATE while the scope is in force in another
    // thread.
    void enter(ThreadState &state);
    void leave() noexcept;
    // Returns whether both lie within the same outermost scope.
    bool is_related(const Scope &other) const noexcept { return outermost_ == other.outermost_; }

    // ---- For ops, while the scope is in force ----
    // Issues a launch of `called` and records it. Operands from `fresh` on are results with memory of their own.
    void launch(const OpDef &called, yoke_launch &record, Device &device,
                std::span<Storage *const> storages, size_t fresh);
    // Logs a tensor made by a composed op, still without values.
    void log_empty(const yoke_tensor &x);
    // Adds a call that ran elsewhere: from now on, the call counts as the maker of the last storage.
    void import(const yoke_launch &launch, Device &device, const OpDef &named,
                std::span<Storage *const> storages);
    bool has_made(const Storage &storage) const { return recording().has_made(storage); }
    // Returns the slot for a node instead of x's memory; absent if x's memory cannot be recomputed.
    Slot slot_for(const yoke_tensor &x);

private:
    explicit Scope(Ref<Scope> outer);
    ~Scope() override;
    static Ref<Scope> put_in_force(Ref<Scope> scope);
    Recording &recording() const noexcept;
    template <class Fits>
    static bool has_at_hand(Fits fits) noexcept;
    void finish();
    uint32_t leave_outer();

    const Ref<Scope> outer_;
    Scope *const outermost_;
    std::atomic<ThreadState *> thread_{
        nullptr};  // in an outermost scope: thread with this scope, or an inner scope, in force
    Ref<Recording> recording_;  // either recording_ or run_
    Ref<BudgetRun> run_;        // ended by the outermost scope
    std::atomic<bool> closed_{false};
    std::atomic<uint32_t> handles_{1};
    std::atomic<uint32_t> open_within_{0};  // open scopes directly within this scope
    bool has_left_outer_ = false;           // no longer counted in the outer scope
};

// Puts a scope (or none) in force in the calling thread, which keeps the scope alive meanwhile. Returns the scope
// before; this scope lives on only if another owner holds it.
Scope *set_scope(Scope *scope);

// Guard during which all ops are parts of `op`, for policies that name ops.
class Composing {
public:
    explicit Composing(const OpDef &op)
    {
        if (Scope::of_thread() && !thread_state().composing) [[unlikely]]
            (thread_state().composing = &op), is_outermost_ = true;
    }
    ~Composing()
    {
        if (is_outermost_) [[unlikely]]
            thread_state().composing = nullptr;
    }
    Composing(const Composing &) = delete;
    Composing &operator=(const Composing &) = delete;

private:
    bool is_outermost_ = false;
};

namespace detail {
// Gives up a scope that stays open at the end of a thread or of a relief function. Serves an entry of
// core/base/lent.h.
void drop_scope(Scope *scope) noexcept;
}  // namespace detail

}  // namespace yoke
