#include "core/ops/recompute/scope.h"

#include "core/base/error.h"
#include "core/ops/launch.h"
#include "core/ops/recompute/budget.h"
#include "core/ops/recompute/call_log.h"

#include <exception>
#include <utility>

namespace yoke {

// ---- Opening --------------------------------------------------------------------------------------------------

Scope::Scope(Ref<Scope> outer)
    : outer_(std::move(outer)), outermost_(outer_.present() ? outer_->outermost_ : this)
{
}

Scope::~Scope()
{
    // The scope was never closed, since its thread has ended.
    if (run_.present() && !outer_.present() && is_open()) run_->abandon();
}

Ref<Scope> Scope::put_in_force(Ref<Scope> scope)
{
    if (scope->outer_.present()) scope->outer_->open_within_.fetch_add(1);
    set_scope(scope.get());
    return scope;
}

Ref<Scope> Scope::open(Ref<Policy> policy, bool offloads)
{
    Ref<Scope> outer = Ref<Scope>::share(of_thread());
    Ref<Scope> scope = Ref<Scope>::adopt(new Scope(outer));
    if (outer.present() && outer->run_.present())
        scope->run_ = outer->run_;
    else
        scope->recording_ = Ref<Recording>::adopt(
            new Recording(outer.present() ? outer->recording_ : Ref<Recording>(), std::move(policy),
                          offloads, {}));
    return put_in_force(std::move(scope));
}

Ref<Scope> Scope::open(Ref<MemoryBudget> budget, const char *call)
{
    if (of_thread()) return open(Policy::full());
    Ref<Scope> scope = Ref<Scope>::adopt(new Scope({}));
    scope->run_ = budget->begin(call);
    return put_in_force(std::move(scope));
}

Scope *set_scope(Scope *scope)
{
    ThreadState &state = thread_state();
    if (scope) scope->enter(state);
    if (state.scope && (!scope || !scope->is_related(*state.scope))) state.scope->leave();
    if (scope) scope->retain();
    Scope *before = std::exchange(state.scope, scope);
    if (before) before->release();
    return before;
}

// Takes the scope for the thread. Raises STATE if another thread has the scope: a single thread records at a time.
void Scope::enter(ThreadState &state)
{
    ThreadState *thread = nullptr;
    if (!outermost_->thread_.compare_exchange_strong(thread, &state) && thread != &state)
        fail(
            YOKE_E_STATE,
            "checkpoint: this scope, an outer scope or an inner scope is in use in another thread; use a scope in one thread at a time");
}

void Scope::leave() noexcept
{
    outermost_->thread_.store(nullptr, std::memory_order_release);
}

// Gives up a scope that stayed open when its thread ended, or when a relief function returned.
void detail::drop_scope(Scope *scope) noexcept
{
    scope->leave();
    scope->release();
}

// ---- Closing --------------------------------------------------------------------------------------------------

// Returns whether a fitting scope is in force in the calling thread, perhaps behind inner scopes or set aside by a
// walk.
template <class Fits>
bool Scope::has_at_hand(Fits fits) noexcept
{
    const ThreadState *state = known_thread_state();
    if (!state) return false;
    for (const Scope *scope : {state->scope, state->scope_aside})
        for (; scope; scope = scope->outer_.get())
            if (fits(*scope)) return true;
    return false;
}

bool Scope::is_at_hand(const Recording &recording) noexcept
{
    return has_at_hand([&](const Scope &scope) {
        return scope.recording_.get() == &recording ||
               (scope.run_.present() && scope.run_.get() == recording.run());
    });
}

void Scope::close(const char *call)
{
    if (!is_open())
        fail(YOKE_E_STATE, "%s: this scope is already closed; close each scope once", call);
    const Scope *innermost = of_thread();
    const bool has_inner =
        open_within_.load() || has_at_hand([&](const Scope &scope) {
            return &scope == this || (run_.present() && scope.run_.get() == run_.get());
        });
    if (innermost != this || open_within_.load())
        fail(YOKE_E_STATE, "%s: this scope is not the innermost open scope of this thread%s", call,
             innermost ? has_inner ? "; close its inner scopes first"
                                   : "; close the scope where it was opened"
                       : ", which has no open scope; close the scope where it was opened");
    finish();
}

// Closes an innermost scope, possibly in a coroutine set aside by the host program.
void Scope::finish()
{
    const Ref<Scope> alive = Ref<Scope>::share(this);
    std::exception_ptr failure;
    {
        // The scope is still in force. Releasing its memory may run ops of the script; without this guard, these ops
        // would enter a log that is being cleared.
        const NoLog quiet;
        try {
            if (recording_.present())
                recording_->close();
            else if (!outer_.present())
                run_->finish();
        } catch (...) {
            failure = std::current_exception();
        }
    }
    if (of_thread() == this) set_scope(outer_.get());
    closed_.store(true, std::memory_order_release);
    // If the host program has given up the outer scope, the outer scope waited for its last inner scope.
    if (leave_outer() == 0 && outer_.present() && !outer_->handles_.load() && outer_->is_open())
        outer_->finish();
    if (failure) std::rethrow_exception(failure);
}

// Removes the scope from the open scopes within the outer scope; returns the number of remaining open scopes.
uint32_t Scope::leave_outer()
{
    if (!outer_.present()) return 0;
    if (std::exchange(has_left_outer_, true)) return outer_->open_within_.load();
    return outer_->open_within_.fetch_sub(1) - 1;
}

void Scope::release_handle(const char *call) noexcept
{
    if (handles_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (recording_.present()) recording_->give_up_policy();
    if (!is_open()) return;
    bool is_in_force = false;
    for (const Scope *scope = of_thread(); scope; scope = scope->outer_.get())
        is_in_force |= scope == this;
    try {
        while (is_in_force && is_open() && !of_thread()->open_within_.load())
            of_thread()->close(call);
        if (is_in_force && is_open())
            set_scope(outer_.get());
        else if (is_open() && !open_within_.load())
            leave_outer();
    } catch (const std::exception &) {
        set_scope(outer_.get());  // the log is whole, so the scope's nodes can still recompute
        leave_outer();
    }
}

// ---- While it is in force -------------------------------------------------------------------------------------

Recording &Scope::recording() const noexcept
{
    return run_.present() ? run_->segment() : *recording_;
}

void Scope::launch(const OpDef &called, yoke_launch &record, Device &device,
                   std::span<Storage *const> storages, size_t fresh)
{
    const Ref<BudgetRun> run = run_;
    if (run.present()) run->begin_call(record, device, storages, fresh);  // may cut
    Recording &recording = this->recording();
    if (recording.prepare_write(record, storages)) {
        const OpDef *composing = thread_state().composing;
        Recording::Entry entry =
            recording.prepare(record, device, composing ? *composing : called, storages, fresh);
        issue(called, record, device, storages);
        recording.commit(std::move(entry));
    } else {
        issue(called, record, device, storages);
    }
    if (run.present()) run->end_call(record, storages, fresh);
}

void Scope::log_empty(const yoke_tensor &x)
{
    if (!x.numel) return;
    yoke_operand made{};
    describe_operand(made, &x, YOKE_OPERAND_WRITE);
    yoke_launch nothing{};
    nothing.op = -1;
    nothing.operands = &made;
    nothing.operand_count = 1;
    Storage *storage = x.storage.get();
    const std::span<Storage *const> storages{&storage, 1};
    const Ref<BudgetRun> run = run_;
    if (run.present()) run->begin_call(nothing, *x.device, storages, 0);
    Recording &recording = this->recording();
    recording.commit(recording.prepare(nothing, *x.device, *thread_state().composing, storages, 0));
    if (run.present()) run->end_call(nothing, storages, 0);
}

void Scope::import(const yoke_launch &launch, Device &device, const OpDef &named,
                   std::span<Storage *const> storages)
{
    recording().log().import(launch, device, named, storages);
    if (run_.present()) run_->note_imported(*storages.back());
}

Slot Scope::slot_for(const yoke_tensor &x)
{
    if (run_.present()) run_->note_saved(*x.storage);
    return recording().slot_for(x);
}

}  // namespace yoke
