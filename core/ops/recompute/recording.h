// recording.h: what a checkpoint scope records, from which backward makes the results of its ops again.
//
// While a scope is open in a thread, every launch of that thread is logged: its record, and where each operand comes
// from. A node of the tape that would keep memory which the log can make again keeps a slot of the recording instead.
// When the scope closes, the recording shrinks to what its slots need. Backward's first look at a slot launches those
// calls once more (core/ops/recompute/replay.h); no code of the script runs, and nothing of the thread's state matters,
// for a launch has all that it needs in its record: places in the random numbers and dtypes after autocast included.
//
// Conditions that keep it true: what no logged call made (data of the host, moves between devices), or something else
// has written since, is held. What is read from outside is held with its version. Ops that write outside memory are not
// logged, and so not repeated; if calls before had read it, they get a copy of what it was.
//
// A recording needs what calls made before it began, in an outer one: it holds a slot there.
#pragma once

#include "core/ops/recompute/logged_call.h"
#include "core/ops/recompute/policy.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

namespace yoke {

class BudgetRun;     // core/ops/recompute/budget_run.h
class CallLog;       // core/ops/recompute/call_log.h
class OffloadEntry;  // core/ops/recompute/offload_queue.h
class Recording;
struct Remake;  // core/ops/recompute/remake.h

// Value that a recording may be asked for, by the nodes and inner recordings that hold it; or that its policy holds.
struct Item {
    Ref<Value> value;
    std::atomic<uint32_t> holders{0};
    Ref<Storage> held;          // in memory, by the policy
    Ref<Offloaded> offloaded;   // the same in that of the host
    bool is_foreign = false;    // an earlier recording's value, which nothing here makes
    bool must_offload = false;  // as the recording closes
    bool is_source =
        false;  // of the calls that make others: then `held` serves until the recording goes

    bool is_kept() const noexcept { return held.present() || offloaded.present(); }
    // Puts what is held into host memory; where that cannot be, it stays.
    void offload();
    void let_go() noexcept
    {
        held = nullptr;
        offloaded = nullptr;
    }
};

// Reference that holds an item of a recording.
class Slot {
public:
    Slot() = default;
    Slot(Ref<Recording> recording, Item &item);
    Slot(Slot &&other) noexcept
        : recording_(std::move(other.recording_)), item_(std::exchange(other.item_, nullptr))
    {
    }
    Slot &operator=(Slot &&other) noexcept
    {
        std::swap(recording_, other.recording_);
        std::swap(item_, other.item_);
        return *this;
    }
    ~Slot()
    {
        if (item_) [[unlikely]]
            let_go();
    }
    bool present() const noexcept { return item_ != nullptr; }
    Recording &recording() const noexcept { return *recording_; }
    Item &item() const noexcept { return *item_; }
    const Value &value() const noexcept { return *item_->value; }

private:
    void let_go() noexcept;

    Ref<Recording> recording_;
    Item *item_ = nullptr;
};

// Record of one scope or segment. While it is open, one thread alone uses it, without a lock. Once it is closed, walks
// of several threads read it.
class Recording final : public RefCounted {
public:
    // Begins behind the calls that `outer` (null: none) has logged so far. `offloads`: what is held, and what it has of
    // earlier recordings, waits in the host's memory. `run`: whose segment it is; null: nobody's.
    Recording(Ref<Recording> outer, Ref<Policy> policy, bool offloads, Ref<BudgetRun> run);

    // ---- While it is open ----
    // Tells before a launch runs whether it can be logged. If not, gives a copy to calls that had read what it writes.
    bool prepare_write(const yoke_launch &launch, std::span<Storage *const> storages);
    // Call on its way into the log: prepared before it runs, for which there may be no memory, and committed when it
    // has. Operands from `fresh` on are results with memory of their own; the storages are borrowed.
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
    CallLog &log() const noexcept { return *log_; }
    bool has_made(const Storage &storage) const;
    // Returns what a node keeps instead of x's memory; absent where that cannot be made again.
    Slot slot_for(const yoke_tensor &x);
    // Asks the policy no more as the recording closes, and then holds nothing by it: whom the policy asks may be gone.
    void give_up_policy() noexcept { has_policy_.store(false, std::memory_order_relaxed); }
    // Shrinks to what its slots need. Raises what the policy does; the recording is closed all the same.
    void close();

    // ---- For Needs and Replays ----
    bool is_open() const noexcept { return !closed_.load(std::memory_order_acquire); }
    std::span<const Ref<LoggedCall>> calls() const;
    const std::deque<Item> &items() const noexcept { return items_; }
    Item *find_item(const Value &value) const;
    // Returns a slot of a value; a value from before this recording began is an outer recording's.
    Slot request(const Value &value);
    // Visits what this recording has in the host's memory.
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

    // ---- For a BudgetRun ----
    BudgetRun *run() const noexcept { return run_.get(); }
    // Gives a copy to calls of a closed recording that read the storage as it is now. The first such call makes `copy`.
    void give_copy(Storage &storage, Ref<Storage> &copy);

private:
    ~Recording() override;

    Value *writable(Storage &storage) const;
    void lose(Storage &storage);
    void prepare_remake(Entry &entry, const yoke_launch &whole, Device &device,
                        const Remake &remake);
    Item &item_of(Value &value);
    Slot slot_of(Value &value);
    Slot foreign_slot(Storage &storage);
    void ask_policy();
    void shrink();
    void give_up() noexcept;
    void offload_all();

    const Ref<Recording> outer_;
    const Ref<BudgetRun> run_;
    Ref<CallLog> log_;  // until it is closed
    const uint32_t begin_;
    const Ref<Policy> policy_;
    std::atomic<bool> has_policy_{true};
    const bool offloads_;
    Ref<OffloadEntry> offload_entry_;  // once closed, of one that has offloaded something
    std::deque<Item> items_;           // they stay where they are
    std::unordered_map<const Value *, Item *> item_by_value_;
    std::vector<Ref<LoggedCall>> calls_;  // once closed: those that its items need
    std::unordered_map<const Value *, Slot>
        requests_;  // once closed: what they read of the outer one
    std::atomic<bool> closed_{false};
};

}  // namespace yoke
