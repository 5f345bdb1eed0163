// scope.h: checkpoint scopes, as the program opens and closes them: what the ops in a scope have made is dropped, and
// made again when backward asks for it. Scopes nest.
//
// A scope has a recording of its own (core/ops/recompute/recording.h). A scope of a memory budget, and each scope
// within that, has the budget's run instead, which makes recordings one after another
// (core/ops/recompute/budget_run.h).
#pragma once

#include "core/base/thread_state.h"
#include "core/ops/recompute/recording.h"

#include <atomic>
#include <cstdint>

namespace yoke {

class MemoryBudget;  // core/ops/recompute/budget.h

// Scope of a program. It is in force in one thread at a time, which alone records, so there is no lock; handles may be
// given up in any thread.
class Scope final : public RefCounted {
public:
    // Opens a scope in the calling thread, within the scope that is in force there. `offloads`: what is held, and what
    // it has of earlier scopes, waits in the host's memory.
    static Ref<Scope> open(Ref<Policy> policy, bool offloads = false);
    // Opens a scope of a budget. Within a scope of a budget all belongs to that; within another scope the new scope is
    // one that holds nothing. Raises STATE while a scope of that budget is open elsewhere.
    static Ref<Scope> open(Ref<MemoryBudget> budget, const char *call);
    // Closes the scope. Raises STATE unless it is the innermost scope of the calling thread and none is open within it:
    // coroutines of the host may have set one aside.
    void close(const char *call);
    // Counts the handles by which the host holds the scope. The last one closes the scope, with those within it, where
    // it is at hand; if one within it was set aside, as soon as that is closed.
    void retain_handle() noexcept { handles_.fetch_add(1, std::memory_order_relaxed); }
    void release_handle(const char *call) noexcept;
    bool is_open() const noexcept { return !closed_.load(std::memory_order_acquire); }

    static Scope *of_thread() noexcept
    {
        const ThreadState *state = known_thread_state();
        return state ? state->scope : nullptr;
    }
    // Tells whether a scope that records into it is in force in the calling thread, perhaps behind inner scopes or set
    // aside by a walk.
    static bool is_at_hand(const Recording &recording) noexcept;

    // ---- For set_scope ----
    // Comes into force in a thread, which raises STATE while it is so in another; or no longer.
    void enter(ThreadState &state);
    void leave() noexcept;
    // Tells whether both lie within one outermost scope.
    bool is_related(const Scope &other) const noexcept { return outermost_ == other.outermost_; }

    // ---- For ops, while it is in force ----
    // Issues a launch of `called` and records it. Operands from `fresh` on are results with memory of their own.
    void launch(const OpDef &called, yoke_launch &record, Device &device,
                std::span<Storage *const> storages, size_t fresh);
    // Logs a tensor that a composed op has made, whose values are not set yet.
    void log_empty(const yoke_tensor &x);
    // Takes up a call that ran elsewhere: from now on it has made the last one of the storages.
    void import(const yoke_launch &launch, Device &device, const OpDef &named,
                std::span<Storage *const> storages);
    bool has_made(const Storage &storage) const { return recording().has_made(storage); }
    // Returns what a node keeps instead of x's memory; absent where that cannot be made again.
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
        nullptr};               // of an outermost one: in which it, or one within it, is in force
    Ref<Recording> recording_;  // one of these two
    Ref<BudgetRun> run_;        // which the outermost scope ends
    std::atomic<bool> closed_{false};
    std::atomic<uint32_t> handles_{1};
    std::atomic<uint32_t> open_within_{0};  // scopes that are open directly within it
    bool has_left_outer_ = false;           // and is no more counted there
};

// Puts a scope (or none) in force in the calling thread, which keeps it alive meanwhile; returns the one before, which
// lives on only if someone else holds it.
Scope *set_scope(Scope *scope);

// Guard in whose lifetime the ops that run are parts of `op`, for policies that ask for it by name.
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
// Serves core/base/lent.h.
void drop_scope(Scope *scope) noexcept;
}  // namespace detail

}  // namespace yoke
