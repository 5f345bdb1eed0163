// call_log.h: the calls of an outermost checkpoint scope and of all scopes within, while they are open.
#pragma once

#include "core/base/thread_state.h"
#include "core/ops/recompute/logged_call.h"

#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace yoke {

// Log of calls in order. Only the thread with the scopes in force uses the log, so there is no lock.
class CallLog final : public RefCounted {
public:
    CallLog();

    const uint64_t number;  // never another log's

    uint32_t size() const noexcept { return static_cast<uint32_t>(calls_.size()); }
    std::span<const Ref<LoggedCall>> calls() const noexcept { return calls_; }
    // Returns the log's value now in the storage; null for contents made or changed outside the log.
    Value *value_of(Storage &storage) const;
    // Makes a call for the next place in the log, with the source of each operand in memory. Operands from `fresh` on
    // are results with memory of their own.
    Ref<LoggedCall> make_call(const yoke_launch &launch, Device &device, const OpDef &named,
                              std::span<Storage *const> storages, size_t fresh) const;
    // Reserves memory now for adding two calls, so that add() cannot fail.
    void reserve_two();
    void add(Ref<LoggedCall> call) noexcept { calls_.push_back(std::move(call)); }
    // Adds a call that ran elsewhere: from now on, the call counts as the maker of the last storage.
    void import(const yoke_launch &launch, Device &device, const OpDef &named,
                std::span<Storage *const> storages);
    void clear() noexcept;

private:
    // Memory made by calls outside the log, for which the log has calls of its own: kept casts of weights.
    struct Import {
        Ref<Value> value;
        Ref<Storage> storage;  // held, so that no other storage gets the address
    };

    std::vector<Ref<LoggedCall>> calls_;
    std::unordered_map<const Storage *, Import> imports_;
};

// Returns a copy of all bytes of a storage. No scope logs the copy.
Ref<Storage> copy_of(Storage &storage);
// Gives a copy to the calls that read the storage from outside in its present version. The first such call makes
// `copy`.
void give_copy_to_readers(std::span<const Ref<LoggedCall>> calls, Storage &storage,
                          Ref<Storage> &copy);

// Guard during which the thread logs nothing.
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
