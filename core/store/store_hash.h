// store_hash.h: the store itself, in memory: for ranks in threads of one process, and for rank 0's server.
#pragma once

#include "core/store/store.h"

#include <condition_variable>
#include <unordered_map>

namespace yoke {

class HashStore final : public Store {
public:
    static constexpr size_t kMostBytes = size_t{256} << 20;

    explicit HashStore(std::string where = "this process");
    // Calls `then` as Store::when_set does, never while a lock of the table is held.
    std::optional<uint64_t> when_set(std::string_view key, Then then) override;
    void forget(std::string_view key, uint64_t number) noexcept override;
    std::string where() const override { return where_; }

    // Returns the missing keys among `keys`.
    Keys missing(const Keys &keys) const;
    bool has(const std::string &key) const;

private:
    struct Waiter {
        uint64_t number;
        Then then;
    };
    using Waiters = std::vector<Waiter>;

    std::vector<std::string> serve(const Request &request, const Patience &patience) override;
    void wake() noexcept override;

    std::unique_lock<std::mutex> lock(const char *call) const;
    std::string change(const Request &request);
    std::vector<std::string> await(const Request &request, const Patience &patience);
    // Removes the key, if it is there. The caller holds the lock, for the next three functions too.
    void erase(const std::string &key);
    void check_room(const char *call, const std::string &key, std::string_view value) const;
    // Sets the key and returns its waiters. The caller calls the waiters without the lock.
    Waiters put(const std::string &key, std::string_view value);
    Keys missing_under_lock(const Keys &keys) const;

    const std::string where_;
    const int64_t process_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::unordered_map<std::string, std::string> values_;
    std::unordered_map<std::string, Waiters> waiters_;
    uint64_t last_number_ = 0;
    size_t bytes_ = 0;  // approximate size of all keys and values
};

}  // namespace yoke
