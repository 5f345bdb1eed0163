// store.h: a small table of texts that all ranks of a job share: how they find each other, and how they tell each other
// why something failed.
//
// Every call has a deadline and raises
//   YOKE_E_TIMEOUT  when it has passed, naming the keys that nobody has set;
//   YOKE_E_COMM     when the table is out of reach for ever: rank 0, which keeps it, has gone;
//   YOKE_E_VALUE    for a key or value that is too long, for too many of them, and for add to what is no number;
//   YOKE_E_FORKED   in a forked child of the process that opened it;
//   and what abort was given, once it was called.
// Calls may come from any thread, and each key has one order of changes that all ranks see.
//
// When the process that keeps the table dies, the ranks cannot agree by it any more. Each then notices by itself that
// its connection to rank 0 has ended, which is the same cause everywhere; what rank 0 had made known before was pushed
// to all in one go, so a rank has it before that end.
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

// Why calls end early. A view's is raised with all that it is a view of.
class Stop {
public:
    explicit Stop(const Stop *of = nullptr) : of_(of) {}
    // `call_size`: of the name of a call with which the text begins, or 0.
    void raise(yoke_status status, std::string_view why, size_t call_size);
    // Raises what it, or one that it is of, was raised with.
    void check() const;

private:
    const Stop *of_;
    std::atomic<bool> is_raised_{false};
    yoke_status status_ = YOKE_OK;  // written before is_raised_
    std::string why_;
    size_t call_size_ = 0;
    std::mutex mutex_;
};

// How long a call may wait.
struct Patience {
    Deadline deadline;
    const Stop *stop;
};

class Store {
public:
    static constexpr size_t kLongestKey = 1024;
    static constexpr size_t kLongestValue = size_t{16} << 20;
    static constexpr size_t kMostKeys = 65536;  // that one call waits for
    using Keys = std::vector<std::string>;

    virtual ~Store() = default;
    Store(const Store &) = delete;
    Store &operator=(const Store &) = delete;

    void set(std::string_view key, std::string_view value, Deadline deadline);
    // Waits until the key is there; and until all of them are, whose values come in their order.
    std::string get(std::string_view key, Deadline deadline);
    std::vector<std::string> get_all(const Keys &keys, Deadline deadline);
    // Waits until all of them are there.
    void wait(const Keys &keys, Deadline deadline);
    // The sum of all that was added under the key, this included; get shows it as a decimal number.
    int64_t add(std::string_view key, int64_t delta, Deadline deadline);
    // Nothing where the key is not there.
    std::optional<std::string> try_get(std::string_view key, Deadline deadline);
    // Sets it where it is not there; the value that then stands. So of several ranks one is the first, and all know it.
    std::string set_once(std::string_view key, std::string_view value, Deadline deadline);
    // What is not there is no error.
    void remove(std::string_view key, Deadline deadline);
    void remove_all(const Keys &keys, Deadline deadline);

    // `then` gets the value once the key is there, at once where it is; once, in a thread of the store's or of whoever
    // sets it: it takes no lock that is held around a call of the store, and returns soon. After abort, and when the
    // table is out of reach, it is not called. The number by which it may be forgotten, 0 where it has been called
    // already; nothing where this kind of store cannot: ask try_get from time to time.
    using Then = std::function<void(const std::string &value)>;
    virtual std::optional<uint64_t> when_set(std::string_view key, Then then);
    // Sets it where it is not there, and does not wait to hear which value then stands: when_set tells. False where
    // this kind of store cannot. Threads of the store's may call it.
    virtual bool offer(std::string_view key, std::string_view value);
    // It is not to be called any more, though that may be under way; what it holds is let go of.
    virtual void forget(std::string_view key, uint64_t number) noexcept;

    // From any thread: calls that wait, and later ones, raise this. The first one counts. Of a view it ends what goes
    // through the view alone.
    void abort(yoke_status status, std::string_view why, size_t call_size = 0) noexcept;
    // Who keeps the table, for messages: "10.0.0.1:29500", "/tmp/file".
    virtual std::string where() const = 0;

protected:
    explicit Store(const Stop *of = nullptr) : stop_(of) {}
    const Stop &stop() const noexcept { return stop_; }

    // A call as a store carries it out. Its keys and its value fit.
    struct Request {
        enum Kind : uint8_t { kSet, kGet, kWait, kAdd, kTryGet, kSetOnce, kRemove };
        Kind kind;
        Keys keys;                    // one; of kGet, kWait and kRemove any number
        std::string_view value = {};  // of kSet and kSetOnce
        int64_t delta = 0;            // of kAdd
        // Returns the name of the call, for messages.
        const char *name() const noexcept;
    };
    friend class PrefixStore;
    // Returns the texts that the call asks for: of kGet the values, in the order of their keys; of kAdd the sum; of
    // kTryGet the value, or nothing; of kSetOnce the value that stands.
    virtual std::vector<std::string> serve(const Request &request, const Patience &patience) = 0;
    // Calls that wait look at their stop.
    virtual void wake() noexcept = 0;

private:
    Stop stop_;
};

// A view of a store, whose keys begin with `prefix` and a slash: of an epoch, of a group.
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

// Those of all ranks, in their order. `name` is new for each: no two share one.
std::vector<std::string> all_gather(Store &store, std::string_view name, int32_t rank, int32_t size,
                                    std::string_view mine, Deadline deadline);
// What is left of it, to be removed once all ranks have those texts.
Store::Keys gather_keys(std::string_view name, int32_t size);

namespace detail {
// "'a', 'b' and 3 more".
std::string key_list(const Store::Keys &keys);
[[noreturn]] void fail_late(const Store::Keys &missing, const Patience &patience,
                            const std::string &where);
[[noreturn]] void fail_forked(const char *call);
// What add makes of a key's former text, "0" where it was not there.
int64_t sum_of(const std::string &key, std::string_view former, int64_t delta);
}  // namespace detail

}  // namespace yoke
