// store.h: a small store of texts, shared by all ranks of a job. By the store, ranks find each other and report
// failures.
//
// Every call has a deadline and raises
//   YOKE_E_TIMEOUT  after the deadline, with the names of the missing keys;
//   YOKE_E_COMM     if the store is out of reach for ever, because rank 0, its server, has gone;
//   YOKE_E_VALUE    for too long a key or value, for too many keys, and for add to a text that is no number;
//   YOKE_E_FORKED   in a forked child of the process that opened the store;
//   and the error given to abort, after an abort.
// Calls may come from any thread. All ranks see the changes of a key in the same order.
//
// When the store's process dies, the ranks can no longer agree by the store. Each rank then notices the end of its
// connection to rank 0, the same cause everywhere. Causes that rank 0 published before were sent to all ranks at
// once, so a rank receives them before that end.
#pragma once

#include "core/base/deadline.h"
#include "yoke/types.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// Reason why calls end early. A view also ends with the reason of its store.
class Stop {
public:
    explicit Stop(const Stop *of = nullptr) : of_(of) {}
    // Notes the error with which calls end, and its text. The first error counts. `call_size`: size of a call's name
    // at the beginning of the text, or 0.
    void raise(yoke_status status, std::string_view why, size_t call_size);
    // Raises the error with which this stop, or the stop of the view's store, was raised. Does nothing if neither was
    // raised.
    void check() const;

private:
    const Stop *of_;
    std::atomic<bool> is_raised_{false};
    yoke_status status_ = YOKE_OK;  // written before is_raised_
    std::string why_;
    size_t call_size_ = 0;
    std::mutex mutex_;
};

// Time that a call may wait.
struct Patience {
    Deadline deadline;
    const Stop *stop;
};

class Store {
public:
    static constexpr size_t kLongestKey = 1024;
    static constexpr size_t kLongestValue = size_t{16} << 20;
    static constexpr size_t kMostKeys = 65536;  // in one waiting call
    using Keys = std::vector<std::string>;

    virtual ~Store() = default;
    Store(const Store &) = delete;
    Store &operator=(const Store &) = delete;

    void set(std::string_view key, std::string_view value, Deadline deadline);
    // Waits until the key is there, and returns its value. get_all() waits for all keys, and returns the values in
    // the order of the keys.
    std::string get(std::string_view key, Deadline deadline);
    std::vector<std::string> get_all(const Keys &keys, Deadline deadline);
    // Waits until all keys are there.
    void wait(const Keys &keys, Deadline deadline);
    // Adds a number to the key's number, and returns the sum. A missing key counts as 0. get() returns the sum in
    // decimal.
    int64_t add(std::string_view key, int64_t delta, Deadline deadline);
    // Returns the key's value without waiting for the key, or nullopt if the key is missing.
    std::optional<std::string> try_get(std::string_view key, Deadline deadline);
    // Sets the key if it is missing, and returns the value in the store. So of several ranks a single rank is the
    // first, and all ranks know its value.
    std::string set_once(std::string_view key, std::string_view value, Deadline deadline);
    // Removes the key. A missing key is no error.
    void remove(std::string_view key, Deadline deadline);
    void remove_all(const Keys &keys, Deadline deadline);

    // Calls `then` once with the key's value: at once if the key is there, else when the key is set. The call comes
    // in a thread of the store or of the setting rank. `then` takes no lock held around a call of the store, and
    // returns soon. After abort, or if the store is out of reach, `then` is not called. Returns the number for
    // forget(), or 0 if `then` was called already. Returns nullopt if this kind of store has no support: then call
    // try_get from time to time.
    using Then = std::function<void(const std::string &value)>;
    virtual std::optional<uint64_t> when_set(std::string_view key, Then then);
    // Sets the key if it is missing, and does not wait for an answer: when_set reports the value in the store.
    // Returns false if this kind of store has no support. Threads of the store may call this.
    virtual bool offer(std::string_view key, std::string_view value);
    // Ends the wait that when_set began for the key, and releases `then`. A call of `then` may still be running.
    virtual void forget(std::string_view key, uint64_t number) noexcept;

    // Makes waiting and later calls raise this error. Any thread may call this; the first error counts. On a view,
    // only calls through the view end.
    void abort(yoke_status status, std::string_view why, size_t call_size = 0) noexcept;
    // Returns the place of the store, for messages: "10.0.0.1:29500", "/tmp/file".
    virtual std::string where() const = 0;

protected:
    explicit Store(const Stop *of = nullptr) : stop_(of) {}
    const Stop &stop() const noexcept { return stop_; }

    // Call for a store to carry out. Keys and value have been checked.
    struct Request {
        enum Kind : uint8_t { kSet, kGet, kWait, kAdd, kTryGet, kSetOnce, kRemove };
        Kind kind;
        Keys keys;                    // a single key; for kGet, kWait and kRemove any number
        std::string_view value = {};  // for kSet and kSetOnce
        int64_t delta = 0;            // for kAdd
        // Returns the name of the call, for messages.
        const char *name() const noexcept;
    };
    friend class PrefixStore;
    // Carries out the call, and returns the texts of the answer. kGet: the values, in the order of the keys. kAdd:
    // the sum. kTryGet: the value, or no text. kSetOnce: the value in the store.
    virtual std::vector<std::string> serve(const Request &request, const Patience &patience) = 0;
    // Wakes waiting calls, so they check their stop.
    virtual void wake() noexcept = 0;

private:
    Stop stop_;
};

// View of a store, for an epoch or a group: puts `prefix` and a slash in front of all keys.
class PrefixStore final : public Store {
public:
    PrefixStore(std::shared_ptr<Store> of, std::string prefix);
    std::optional<uint64_t> when_set(std::string_view key, Then then) override;
    bool offer(std::string_view key, std::string_view value) override;
    void forget(std::string_view key, uint64_t number) noexcept override;
    std::string where() const override { return of_->where(); }

private:
    std::vector<std::string> serve(const Request &request, const Patience &patience) override;
    void wake() noexcept override { of_->wake(); }
    std::string full(std::string_view key) const { return prefix_ + std::string(key); }

    const std::shared_ptr<Store> of_;
    const std::string prefix_;
};

// Publishes this rank's text, waits for the texts of all ranks, and returns the texts in the order of ranks. `name`
// is new for each call: two calls never share a name.
std::vector<std::string> all_gather(Store &store, std::string_view name, int32_t rank, int32_t size,
                                    std::string_view mine, Deadline deadline);
// Returns the keys that all_gather leaves, for removal once all ranks have the texts.
Store::Keys gather_keys(std::string_view name, int32_t size);

namespace detail {
// Returns the first 16 keys for a message: "'a', 'b' and 3 more".
std::string key_list(const Store::Keys &keys);
[[noreturn]] void fail_late(const Store::Keys &missing, const Patience &patience,
                            const std::string &where);
[[noreturn]] void fail_forked(const char *call);
// Returns the sum of a key's former text ("0" if the key was missing) and the delta. Raises YOKE_E_VALUE if the text
// is no number, or the sum is out of range.
int64_t sum_of(const std::string &key, std::string_view former, int64_t delta);
}  // namespace detail

}  // namespace yoke
