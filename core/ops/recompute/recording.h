// recording.h: recording of a scope, from which backward recomputes the results of the scope's ops.
//
// While a checkpoint scope is open in a thread, every launch of the thread is logged: its record, and the source of
// each operand. If a tape node would keep memory that the log can recompute, the node keeps a slot of the recording
// instead. When the scope closes, the recording shrinks to the calls needed by its slots. At backward's first look at
// a slot, these calls are launched once more (core/ops/recompute/replay.h). No code of the script runs, and the
// thread's state does not matter: a launch's record is complete, including places in the random numbers and dtypes
// after autocast.
//
// Conditions that keep the recording valid: Memory made outside the log (data of the host program, moves between
// devices), or written since outside the log, is held. Memory read from outside is held with its version. Ops that
// write outside memory are not logged, and so not repeated; earlier calls that had read this memory get a copy of its
// former contents.
//
// If a recording needs values of calls before its begin, made in an outer recording, it holds a slot there.
//
// Example: y = tanh(x @ w) in a scope, followed by the loss y.sum().
//  1. The launch of matmul is logged: record, operands x and w (outside memory, held), result m as a Value.
//  2. The launch of tanh is logged: operand m, result y. The gradient of tanh reads y, so its node gets a slot with the
//     item of y in place of the memory. No node needs m.
//  3. The scope closes. Item y has a holder, so its call and the call that makes m stay in the recording. When the
//     script releases y, the memory of y and m is free.
//  4. Backward opens the slot. Replays launches matmul and tanh again, gives y to the node, and drops m.
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

// Value that nodes and inner recordings may request by holding the item, or that the policy holds.
struct Item {
    Ref<Value> value;
    std::atomic<uint32_t> holders{0};
    Ref<Storage> held;          // in memory, by the policy
    Ref<Offloaded> offloaded;   // held data in host memory
    bool is_foreign = false;    // value of an earlier recording, made by no call here
    bool must_offload = false;  // as the recording closes
    bool is_source =
        false;  // read by calls that recompute others; `held` stays until the recording's end

    bool is_kept() const noexcept { return held.present() || offloaded.present(); }
    // Moves held memory to host memory; if this is impossible, the memory stays.
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

// Record of a scope or segment. While open, the recording is used by a single thread, without a lock. After closing,
// walks of several threads read the recording.
class Recording final : public RefCounted {
public:
    // Begins after the calls logged so far by `outer` (null: none). `offloads`: held memory, and memory of earlier
    // recordings, waits in host memory. `run`: run of a segment; null: no segment.
    Recording(Ref<Recording> outer, Ref<Policy> policy, bool offloads, Ref<BudgetRun> run);

    // ---- While it is open ----
    // Returns, before a launch runs, whether it can be logged. If not, gives a copy of the written memory to calls
    // that had read this memory.
    bool prepare_write(const yoke_launch &launch, std::span<Storage *const> storages);
    // Call on its way into the log: prepared before it runs, since memory may run out, and committed afterwards.
    // Operands from `fresh` on are results with memory of their own; the storages are borrowed.
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
    // Returns the slot for a node instead of x's memory; absent if x's memory cannot be recomputed.
    Slot slot_for(const yoke_tensor &x);
    // Stops asking the policy when the recording closes, and holds nothing by the policy: its functions may be gone.
    void give_up_policy() noexcept { has_policy_.store(false, std::memory_order_relaxed); }
    // Shrinks to the calls needed by its slots. Raises the policy's error; the recording is closed in any case.
    void close();

    // ---- For Needs and Replays ----
    bool is_open() const noexcept { return !closed_.load(std::memory_order_acquire); }
    std::span<const Ref<LoggedCall>> calls() const;
    const std::deque<Item> &items() const noexcept { return items_; }
    Item *find_item(const Value &value) const;
    // Returns a slot of a value. A value made before this recording began is requested from the outer recording.
    // Raises INTERNAL if the closed recording has not kept the value.
    Slot request(const Value &value);
    // Visits the data in host memory that this recording may still need.
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
    // Gives a copy to calls of a closed recording that read the storage in its present version. The first such call
    // makes `copy`.
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
    Ref<OffloadEntry> offload_entry_;  // after closing, if data were offloaded
    std::deque<Item> items_;           // deque, so that items never move
    std::unordered_map<const Value *, Item *> item_by_value_;
    std::vector<Ref<LoggedCall>> calls_;  // after closing: calls needed by the items
    std::unordered_map<const Value *, Slot>
        requests_;  // after closing: values read from the outer recording
    std::atomic<bool> closed_{false};
};

}  // namespace yoke
