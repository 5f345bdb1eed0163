// recompute.h: checkpoint scopes: what their ops have made is dropped, and made again when backward asks for it.
//
// While a scope is open in a thread, every launch of that thread is logged: its record, and where each operand comes
// from. A node of the tape that would keep memory which the log can make again keeps a slot of the scope instead. When
// the scope closes, the log shrinks to what its slots need. Backward's first look at a slot launches those calls once
// more (core/ops/recompute/replay.h); no code of the script runs, and nothing of the thread's state matters, for a
// launch has all that it needs in its record: places in the random numbers and dtypes after autocast included.
//
// What keeps it true: what no logged call made (data of the host, moves between devices), or something else has
// written since, is held. What is read from outside is held with its version. Ops that write outside memory are not
// logged, and so not repeated; if calls before had read it, they get a copy of what it was.
//
// Scopes nest. A scope needs what calls made before it began, in an outer one: it holds a slot there.
#pragma once

#include "core/base/thread_state.h"
#include "core/ops/recompute/logged_call.h"
#include "core/ops/recompute/policy.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

namespace yoke {

class BudgetRun;     // core/ops/recompute/budget_run.h
class MemoryBudget;  // core/ops/recompute/budget.h
class OffloadEntry;  // core/ops/recompute/offload_queue.h
class Scope;
struct Remake;  // core/ops/recompute/remake.h

// A value that a scope may be asked for, by the nodes and inner scopes that hold it; or that its policy holds.
struct Item {
    Ref<Value> value;
    std::atomic<uint32_t> holders{0};
    Ref<Storage> held;          // in memory, by the policy
    Ref<Offloaded> offloaded;   // the same in that of the host
    bool is_foreign = false;    // an earlier scope's value, which nothing here makes
    bool must_offload = false;  // as the scope closes
    bool is_source =
        false;  // of the calls that make others: then `held` serves until the scope goes

    bool is_kept() const noexcept { return held.present() || offloaded.present(); }
    void let_go() noexcept
    {
        held = nullptr;
        offloaded = nullptr;
    }
};

// Holds an item of a scope.
class Slot {
public:
    Slot() = default;
    Slot(Ref<Scope> scope, Item &item);
    Slot(Slot &&other) noexcept
        : scope_(std::move(other.scope_)), item_(std::exchange(other.item_, nullptr))
    {
    }
    Slot &operator=(Slot &&other) noexcept
    {
        std::swap(scope_, other.scope_);
        std::swap(item_, other.item_);
        return *this;
    }
    ~Slot()
    {
        if (item_) [[unlikely]]
            let_go();
    }
    bool present() const noexcept { return item_ != nullptr; }
    Scope &scope() const noexcept { return *scope_; }
    Item &item() const noexcept { return *item_; }
    const Value &value() const noexcept { return *item_->value; }

private:
    void let_go() noexcept;

    Ref<Scope> scope_;
    Item *item_ = nullptr;
};

// The calls of one outermost scope and all within it, while it is open.
struct Log final : RefCounted {
    Log();
    const uint64_t number;                       // never another log's
    std::atomic<ThreadState *> thread{nullptr};  // in which one of its scopes is in force
    std::vector<Ref<LoggedCall>> calls;
    // Memory that other calls made than those that the log has for it: kept casts of weights.
    struct Import {
        Ref<Value> value;
        Ref<Storage> storage;  // held, so that its address stays its own
    };
    std::unordered_map<const Storage *, Import> imports;
};

// Which calls make what is wanted, and how often each value is read on the way.
struct Needs {
    std::vector<LoggedCall *> calls;  // in order
    std::unordered_map<const Value *, uint32_t> uses;
    std::vector<Item *> sources;  // held items that the calls read
};

class Scope final : public RefCounted {
public:
    // Opens one in the calling thread, within the one that is in force there. `offloads`: what is held, and what it has
    // of earlier scopes, waits in the host's memory.
    static Ref<Scope> open(Ref<Policy> policy, bool offloads = false);
    // Within a scope of a budget all belongs to that; within another one it is one of those that hold nothing. Raises
    // STATE while a scope of that budget is open elsewhere.
    static Ref<Scope> open(Ref<MemoryBudget> budget, const char *call);
    // Raises STATE unless it is the innermost one of the calling thread and none is open within it: coroutines of the
    // host may have set one aside.
    void close(const char *call);
    // The host holds it by so many handles; the last one closes it, with those within it, where it is at hand; if one
    // within it was set aside, as soon as that is closed.
    void retain_handle() noexcept { handles_.fetch_add(1, std::memory_order_relaxed); }
    void release_handle(const char *call) noexcept;
    bool is_open() const noexcept { return !closed_.load(std::memory_order_acquire); }
    Scope *outer() const noexcept { return outer_.get(); }
    // For set_scope: it comes into force in a thread, which raises STATE while it is so in another; or no longer.
    void enter(ThreadState &state);
    void leave() noexcept;
    bool shares_log(const Scope &other) const noexcept { return log_.get() == other.log_.get(); }
    // Whether it is in force in the calling thread, perhaps behind inner ones or set aside by a walk.
    bool is_at_hand() const noexcept;

    static Scope *of_thread() noexcept
    {
        const ThreadState *state = known_thread_state();
        return state ? state->scope : nullptr;
    }

    // ---- For a BudgetRun ----
    static Ref<Scope> make_segment(Ref<Policy> policy, Ref<BudgetRun> run);
    void end_segment() { finish(); }
    // To those of its calls that read the storage as it is now; `copy` is made for the first.
    void give_copy(Storage &storage, Ref<Storage> &copy);
    BudgetRun *run() const noexcept { return run_.get(); }

    // ---- For launch.cpp, while it is in force ----
    // The one that takes down what is called in the calling thread.
    static Scope *logging() noexcept
    {
        Scope *scope = of_thread();
        return scope && scope->run_.present() ? scope->segment_of_run() : scope;
    }
    // Before a call runs that writes `written`: whether it can be logged. If not, others that had read what it writes
    // are given a copy.
    bool prepare_write(std::span<Storage *const> written);
    // What is taken down of a call: prepared before it runs, for which there may be no memory, and put into the log
    // when it has. Operands from `fresh` on are results with memory of their own; the storages are borrowed.
    struct Entry {
        Ref<LoggedCall> call;
        Ref<LoggedCall> cheap;  // makes the result `elsewhere` from another of the call's
        size_t elsewhere = SIZE_MAX;
        std::span<Storage *const> storages;
        size_t fresh = 0;
        bool is_held = false;
    };
    Entry prepare(const yoke_launch &launch, Device &device, const OpDef &named,
                  std::span<Storage *const> storages, size_t fresh);
    void commit(Entry entry) noexcept;
    // A composed op has made a tensor whose values are not set yet.
    void log_empty(const yoke_tensor &x);
    // Takes up a call that ran elsewhere: from now on it has made `made`.
    void import(const yoke_launch &launch, Device &device, const OpDef &named,
                std::span<Storage *const> storages);
    bool has_made(const Storage &storage) const;
    // What a node keeps instead of x's memory; absent where that cannot be made again.
    Slot slot_for(const yoke_tensor &x);

    // ---- For replay.cpp ----
    // For all items that are held by somebody and not in memory, and for `wanted`.
    Needs find_needs(Item *wanted, bool as_if_nothing_held = false) const;
    Item *find_item(const Value &value) const;
    template <class Visit>
    void each_item(Visit visit)
    {
        for (Item &item : items_) visit(item);
    }
    // What waits in the host's memory, of this scope; and its place in the queue of those.
    template <class Visit>
    void each_offloaded(Visit visit) const
    {
        for (const Item &item : items_)
            if (item.offloaded.present() &&
                (item.is_source || item.holders.load(std::memory_order_relaxed)))
                visit(item.offloaded);
        for (const Ref<LoggedCall> &call : calls_)
            for (const Source &source : call->sources())
                if (source.offloaded.present()) visit(source.offloaded);
    }
    const Ref<OffloadEntry> &offload_entry() const noexcept { return offload_entry_; }
    // In the outer scope: a value from before this one began.
    Slot request(const Value &value);

private:
    friend class Slot;
    Scope(Ref<Scope> outer, Ref<Log> log, Ref<Policy> policy);
    static Ref<Scope> put_in_force(Scope *made);
    Scope *segment_of_run() const noexcept;
    ~Scope() override;

    Value *value_of(Storage &storage) const;
    Value *writable(Storage &storage) const;
    void lose(Storage &storage);
    void give_copy_to_readers(Storage &storage);
    static void give_copy(std::span<const Ref<LoggedCall>> readers, Storage &storage,
                          Ref<Storage> &copy);
    void take_sources(LoggedCall &call, std::span<Storage *const> storages, size_t fresh) const;
    void prepare_remake(Entry &entry, const yoke_launch &whole, Device &device,
                        const Remake &remake);
    Item &item_of(Value &value);
    Slot slot_of(Value &value);
    Slot foreign_slot(Storage &storage);
    void offload(Item &item);
    void offload_all();
    std::span<const Ref<LoggedCall>> calls() const;
    void ask_policy();
    void shrink();
    void give_up() noexcept;
    void finish();
    uint32_t leave_outer();

    const Ref<Scope> outer_;
    Ref<Log> log_;  // until it is closed
    const uint32_t begin_;
    const Ref<Policy> policy_;
    bool offloads_ = false;
    Ref<OffloadEntry> offload_entry_;  // once closed, of one that has offloaded something
    // Of a segment, and of a scope that hands its calls on to segments; the budget has opened it.
    Ref<BudgetRun> run_;
    Ref<MemoryBudget> budget_;
    std::deque<Item> items_;  // they stay where they are
    std::unordered_map<const Value *, Item *> item_by_value_;
    std::vector<Ref<LoggedCall>> calls_;  // once closed: those that its items need
    std::unordered_map<const Value *, Slot>
        requests_;  // once closed: what they read of the outer one
    std::atomic<bool> closed_{false};
    std::atomic<uint32_t> handles_{1};
    std::atomic<uint32_t> open_within_{0};  // scopes that are open directly within it
    bool has_left_outer_ = false;           // and is no more counted there
};

// Puts a scope (or none) in force in the calling thread, which keeps it alive meanwhile; returns the one before, which
// lives on only if someone else holds it.
Scope *set_scope(Scope *scope);

// What runs in its scope is not logged.
class NoLog {
public:
    NoLog() : before_(std::exchange(thread_state().scope, nullptr)) {}
    ~NoLog() { thread_state().scope = before_; }
    NoLog(const NoLog &) = delete;
    NoLog &operator=(const NoLog &) = delete;
    Scope *before() const noexcept { return before_; }

private:
    Scope *const before_;
};

// The ops that run in its scope are parts of `op`, for policies that ask for it by name.
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
// Of core/base/lent.h.
void drop_scope(Scope *scope) noexcept;
}  // namespace detail

}  // namespace yoke
