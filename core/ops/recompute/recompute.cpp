#include "core/ops/recompute/recompute.h"

#include "core/base/error.h"
#include "core/ops/recompute/budget.h"
#include "core/ops/recompute/offload_queue.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace yoke {

// ---- Slots ----------------------------------------------------------------------------------------------------

Slot::Slot(Ref<Scope> scope, Item &item) : scope_(std::move(scope)), item_(&item)
{
    item.holders.fetch_add(1, std::memory_order_relaxed);
}

void Slot::let_go() noexcept
{
    Item *item = std::exchange(item_, nullptr);
    // A scope that is open looks through its items as it closes.
    if (item->holders.fetch_sub(1, std::memory_order_acq_rel) == 1 && !scope_->is_open() &&
        !item->is_source)
        item->let_go();
}

// ---- Opening and closing --------------------------------------------------------------------------------------

static std::atomic<uint64_t> logs_made{0};

Log::Log() : number(logs_made.fetch_add(1, std::memory_order_relaxed) + 1) {}

Scope::Scope(Ref<Scope> outer, Ref<Log> log, Ref<Policy> policy)
    : outer_(std::move(outer)),
      log_(std::move(log)),
      begin_(static_cast<uint32_t>(log_->calls.size())),
      policy_(std::move(policy))
{
}

Scope::~Scope()
{
    if (run_.present() && !budget_.present()) run_->forget(*this);
    if (offload_entry_.present()) offload_entry_->clear();
    // One that nobody could close: its thread has ended.
    if (!budget_.present() || !is_open()) return;
    run_->abandon();
    budget_->end();
}

Ref<Scope> Scope::put_in_force(Scope *made)
{
    Ref<Scope> scope = Ref<Scope>::adopt(made);
    if (Scope *around = scope->outer()) around->open_within_.fetch_add(1);
    set_scope(made);
    return scope;
}

Ref<Scope> Scope::open(Ref<Policy> policy, bool offloads)
{
    Ref<Scope> outer = Ref<Scope>::share(of_thread());
    Ref<Log> log = outer.present() ? outer->log_ : Ref<Log>::adopt(new Log);
    const Ref<BudgetRun> run = outer.present() ? outer->run_ : Ref<BudgetRun>();
    auto *scope = new Scope(std::move(outer), std::move(log), std::move(policy));
    scope->run_ = run;
    scope->offloads_ = offloads;
    return put_in_force(scope);
}

Ref<Scope> Scope::open(Ref<MemoryBudget> budget, const char *call)
{
    if (of_thread()) return open(Policy::full());
    Ref<Scope> scope = Ref<Scope>::adopt(new Scope({}, Ref<Log>::adopt(new Log), Policy::full()));
    scope->run_ = budget->begin(call);
    scope->budget_ = std::move(budget);
    set_scope(scope.get());
    return scope;
}

Ref<Scope> Scope::make_segment(Ref<Policy> policy, Ref<BudgetRun> run)
{
    Ref<Scope> scope =
        Ref<Scope>::adopt(new Scope({}, Ref<Log>::adopt(new Log), std::move(policy)));
    scope->run_ = std::move(run);
    return scope;
}

Scope *Scope::segment_of_run() const noexcept
{
    return &run_->segment();
}

Scope *set_scope(Scope *scope)
{
    ThreadState &state = thread_state();
    if (scope) scope->enter(state);
    if (state.scope && (!scope || !scope->shares_log(*state.scope))) state.scope->leave();
    if (scope) scope->retain();
    Scope *before = std::exchange(state.scope, scope);
    if (before) before->release();
    return before;
}

// One thread at a time logs.
void Scope::enter(ThreadState &state)
{
    ThreadState *thread = nullptr;
    if (!log_->thread.compare_exchange_strong(thread, &state) && thread != &state)
        fail(
            YOKE_E_STATE,
            "checkpoint: this scope, or one around or within it, is in force in another thread; a scope is one thread's at a time");
}

void Scope::leave() noexcept
{
    log_->thread.store(nullptr, std::memory_order_release);
}

// A thread that ends inside a scope.
void detail::drop_scope(Scope *scope) noexcept
{
    scope->leave();
    scope->release();
}

bool Scope::is_at_hand() const noexcept
{
    const ThreadState *state = known_thread_state();
    if (!state) return false;
    for (const Scope *scope : {state->scope, state->scope_aside})
        for (; scope; scope = scope->outer())
            if (scope == this || (scope->run_.present() && scope->run() == run())) return true;
    return false;
}

void Scope::close(const char *call)
{
    if (!is_open())
        fail(YOKE_E_STATE, "%s: this scope is closed already; a scope is closed once", call);
    const Scope *innermost = of_thread();
    const bool has_inner = open_within_.load() || is_at_hand();
    if (innermost != this || open_within_.load())
        fail(YOKE_E_STATE, "%s: this scope is not the innermost one that is open in this thread%s",
             call,
             innermost ? has_inner ? "; close those first that were opened within it"
                                   : "; close it where it was opened"
                       : ", where none is; close it where it was opened");
    finish();
}

// It is innermost, perhaps in a coroutine that the host has set aside.
void Scope::finish()
{
    const Ref<Scope> alive = Ref<Scope>::share(this);
    std::exception_ptr failure;
    {
        const NoLog quiet;
        try {
            if (policy_->is_asked()) ask_policy();
        } catch (...) {
            failure = std::current_exception();
        }
        try {
            if (budget_.present())
                run_->finish();
            else
                shrink();
        } catch (...) {
            failure = std::current_exception();
            give_up();
        }
    }
    if (budget_.present()) budget_->end();
    if (of_thread() == this) set_scope(outer_.get());
    if (!outer_.present()) {
        log_->calls.clear();
        log_->imports.clear();
    }
    log_ = {};
    closed_.store(true, std::memory_order_release);
    // The one around it, if the host has given that up, waited for the last one within.
    if (leave_outer() == 0 && outer_.present() && !outer_->handles_.load() && outer_->is_open())
        outer_->finish();
    if (failure) std::rethrow_exception(failure);
}

// It counts no more among the scopes that are open within the outer one; returns how many still do.
uint32_t Scope::leave_outer()
{
    if (!outer_.present()) return 0;
    if (std::exchange(has_left_outer_, true)) return outer_->open_within_.load();
    return outer_->open_within_.fetch_sub(1) - 1;
}

void Scope::release_handle(const char *call) noexcept
{
    if (handles_.fetch_sub(1, std::memory_order_acq_rel) != 1 || !is_open()) return;
    bool is_in_force = false;
    for (const Scope *scope = of_thread(); scope; scope = scope->outer())
        is_in_force |= scope == this;
    try {
        while (is_in_force && is_open() && !of_thread()->open_within_.load())
            of_thread()->close(call);
        if (is_in_force && is_open())
            set_scope(outer_.get());
        else if (is_open() && !open_within_.load())
            leave_outer();
    } catch (const std::exception &) {
        set_scope(
            outer_.get());  // what its nodes need, they make again from all that it has logged
        leave_outer();
    }
}

// One that writes in place makes nothing of its own.
static bool makes_something(LoggedCall &call)
{
    return std::ranges::any_of(call.sources(), [&](const Source &source) {
        return source.value.present() && source.value->maker == call.position;
    });
}

// Whether what is held stays so, of each call that makes something which is needed even if nothing were held.
void Scope::ask_policy()
{
    std::unordered_map<uint32_t, Policy::Fate> fates;  // by the call
    std::exception_ptr failure;
    try {
        // One that the host has given up keeps nothing: whom its policy asks may be gone.
        for (LoggedCall *call : find_needs(nullptr, true).calls)
            if (makes_something(*call) && handles_.load())
                fates[call->position] =
                    policy_->holds(*call) ? policy_->fate(*call) : Policy::Fate::kGo;
    } catch (...) {
        failure = std::current_exception();
        fates.clear();
    }
    for (Item &item : items_) {
        if (item.is_foreign) continue;
        const auto place = fates.find(item.value->maker);
        const auto fate = place == fates.end() ? Policy::Fate::kGo : place->second;
        if (fate == Policy::Fate::kGo) item.let_go();
        item.must_offload |= fate == Policy::Fate::kOffload;
    }
    if (failure) std::rethrow_exception(failure);
}

// No memory is left to close it: what it has dropped is lost, and whoever asks for that is told so.
void Scope::give_up() noexcept
{
    calls_.clear();
    requests_.clear();
    for (Item &item : items_) item.let_go();
}

// What no item needs goes: calls with the memory that they hold, and what the policy holds for nothing.
void Scope::shrink()
{
    const Needs needs = find_needs(nullptr);
    for (Item *item : needs.sources) item->is_source = true;
    calls_.reserve(needs.calls.size());
    for (LoggedCall *call : needs.calls) {
        calls_.push_back(Ref<LoggedCall>::share(call));
        for (const Source &source : call->sources())
            if (source.value.present() && source.value->maker < begin_ &&
                !requests_.contains(source.value.get()))
                requests_.emplace(source.value.get(), outer_->request(*source.value));
    }
    for (Item &item : items_)
        if (!item.is_source && item.holders.load(std::memory_order_relaxed) == 0) item.let_go();
    offload_all();
}

// ---- What is needed -------------------------------------------------------------------------------------------

std::span<const Ref<LoggedCall>> Scope::calls() const
{
    if (!is_open()) return calls_;
    return std::span<const Ref<LoggedCall>>(log_->calls).subspan(begin_);
}

Item *Scope::find_item(const Value &value) const
{
    const auto place = item_by_value_.find(&value);
    return place == item_by_value_.end() ? nullptr : place->second;
}

// Backwards through the calls: whoever makes what is needed needs what it reads.
Needs Scope::find_needs(Item *wanted, bool as_if_nothing_held) const
{
    Needs needs;
    for (const Item &item : items_)
        if (&item == wanted || (item.holders.load(std::memory_order_relaxed) && !item.is_foreign &&
                                (as_if_nothing_held || !item.is_kept())))
            needs.uses.emplace(item.value.get(), 1);
    const auto all = calls();
    for (size_t i = all.size(); i-- > 0;) {
        LoggedCall &call = *all[i];
        const auto sources = call.sources();
        const bool is_needed = std::ranges::any_of(sources, [&](const Source &source) {
            return source.value.present() &&
                   call.writes(static_cast<size_t>(&source - sources.data())) &&
                   needs.uses.contains(source.value.get());
        });
        if (!is_needed) continue;
        needs.calls.push_back(&call);
        for (const Source &source : sources) {
            const Value *value = source.value.get();
            // A call makes its own results: they are no use of what was there before.
            if (!value || value->maker == call.position) continue;
            Item *item = find_item(*value);
            if (item && item->is_kept() && !as_if_nothing_held &&
                !call.writes(static_cast<size_t>(&source - sources.data())))
                needs.sources.push_back(item);
            else
                ++needs.uses[value];
        }
    }
    std::ranges::reverse(needs.calls);
    return needs;
}

Slot Scope::request(const Value &value)
{
    if (value.maker < begin_) return outer_->request(value);
    if (is_open()) return slot_of(const_cast<Value &>(value));
    Item *item = find_item(value);
    if (!item) fail(YOKE_E_INTERNAL, "checkpoint: a scope was asked for what it did not keep");
    return {Ref<Scope>::share(this), *item};
}

}  // namespace yoke
