// call_log.h: the calls of an outermost checkpoint scope and of all scopes within it, while they are open.
#pragma once

#include "core/base/thread_state.h"
#include "core/ops/recompute/logged_call.h"

#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace yoke {

// Log of calls in their order. The thread in which the scopes are in force has the log alone, so there is no lock.
class CallLog final : public RefCounted {
public:
    CallLog();

    const uint64_t number;  // never another log's

    uint32_t size() const noexcept { return static_cast<uint32_t>(calls_.size()); }
    std::span<const Ref<LoggedCall>> calls() const noexcept { return calls_; }
    // Returns the log's value that is in the storage now; null for what is, or was changed, from outside.
    Value *value_of(Storage &storage) const;
    // Makes a call for the next place in the log, which names for each operand from memory where it comes from.
    // Operands from `fresh` on are results with memory of their own.
    Ref<LoggedCall> make_call(const yoke_launch &launch, Device &device, const OpDef &named,
                              std::span<Storage *const> storages, size_t fresh) const;
    // Takes the memory now that adding two calls needs.
    void reserve_two();
    void add(Ref<LoggedCall> call) noexcept { calls_.push_back(std::move(call)); }
    // Adds a call that ran elsewhere: from now on it has made the last one of the storages.
    void import(const yoke_launch &launch, Device &device, const OpDef &named,
                std::span<Storage *const> storages);
    void clear() noexcept;

private:
    // Memory that other calls made than those that the log has for it: kept casts of weights.
    struct Import {
        Ref<Value> value;
        Ref<Storage> storage;  // held, so that its address stays its own
    };

    std::vector<Ref<LoggedCall>> calls_;
    std::unordered_map<const Storage *, Import> imports_;
};

// Copies all bytes of a storage, which no scope takes down.
Ref<Storage> copy_of(Storage &storage);
// Gives a copy to those calls that read the storage from outside, as it is now. The first such call makes `copy`.
void give_copy_to_readers(std::span<const Ref<LoggedCall>> calls, Storage &storage,
                          Ref<Storage> &copy);

// Guard in whose lifetime the thread logs nothing.
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

}  // namespace yoke
