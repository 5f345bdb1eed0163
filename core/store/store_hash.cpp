#include "core/store/store_hash.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"

#include <unistd.h>

namespace yoke {

namespace {

size_t bytes_of(const std::string &key)
{
    constexpr size_t kBeside = 128;  // two strings and their place in the table
    return key.size() + kBeside;
}

}  // namespace

HashStore::HashStore(std::string where) : where_(std::move(where)), process_(getpid()) {}

// Another thread may have held it at a fork, and is not in the child.
std::unique_lock<std::mutex> HashStore::lock(const char *call) const
{
    if (process_ != getpid()) detail::fail_forked(call);
    return std::unique_lock(mutex_);
}

HashStore::Waiters HashStore::put(const std::string &key, std::string_view value)
{
    const auto [found, is_new] = values_.try_emplace(key);
    std::string &place = found->second;
    if (is_new) bytes_ += bytes_of(key);
    bytes_ -= place.size();
    bytes_ += value.size();
    place = value;
    changed_.notify_all();
    const auto waiting = waiters_.extract(key);
    return waiting.empty() ? Waiters() : std::move(waiting.mapped());
}

void HashStore::check_room(const char *call, const std::string &key, std::string_view value) const
{
    const size_t more = value.size() + (values_.contains(key) ? 0 : bytes_of(key));
    if (bytes_ + more > kMostBytes)
        fail(
            YOKE_E_VALUE,
            "store.%s: with '%s' the store would hold %zu bytes; at most %zu fit, so remove keys that are done with",
            call, key.c_str(), bytes_ + more, kMostBytes);
}

void HashStore::do_set(const std::string &key, std::string_view value, const Patience &)
{
    std::unique_lock held = lock("set");
    check_room("set", key, value);
    const Waiters waiters = put(key, value);
    held.unlock();
    for (const Waiter &waiter : waiters) waiter.then(std::string(value));
}

std::string HashStore::do_set_once(const std::string &key, std::string_view value, const Patience &)
{
    std::unique_lock held = lock("set_once");
    if (const auto known = values_.find(key); known != values_.end()) return known->second;
    check_room("set_once", key, value);
    const Waiters waiters = put(key, value);
    held.unlock();
    for (const Waiter &waiter : waiters) waiter.then(std::string(value));
    return std::string(value);
}

int64_t HashStore::do_add(const std::string &key, int64_t delta, const Patience &)
{
    std::unique_lock held = lock("add");
    const auto known = values_.find(key);
    const int64_t sum = detail::sum_of(key, known == values_.end() ? "0" : known->second, delta);
    const std::string text = std::to_string(sum);
    check_room("add", key, text);
    const Waiters waiters = put(key, text);
    held.unlock();
    for (const Waiter &waiter : waiters) waiter.then(text);
    return sum;
}

std::optional<std::string> HashStore::do_try_get(const std::string &key, const Patience &)
{
    const std::unique_lock held = lock("try_get");
    const auto known = values_.find(key);
    if (known == values_.end()) return std::nullopt;
    return known->second;
}

void HashStore::do_remove(const std::string &key, const Patience &)
{
    const std::unique_lock held = lock("remove");
    const auto known = values_.find(key);
    if (known == values_.end()) return;
    bytes_ -= known->second.size() + bytes_of(key);
    values_.erase(known);
}

Store::Keys HashStore::missing_under_lock(const Keys &keys) const
{
    Keys missing;
    for (const std::string &key : keys)
        if (!values_.count(key)) missing.push_back(key);
    return missing;
}

Store::Keys HashStore::missing(const Keys &keys) const
{
    const std::unique_lock held = lock("wait");
    return missing_under_lock(keys);
}

bool HashStore::has(const std::string &key) const
{
    const std::unique_lock held = lock("wait");
    return values_.count(key) != 0;
}

std::vector<std::string> HashStore::do_await(const Keys &keys, bool wants_values,
                                             const Patience &patience)
{
    std::unique_lock held = lock("get");
    for (Keys left = keys;;) {
        patience.stop->check();
        left = missing_under_lock(left);
        if (left.empty()) break;
        if (patience.deadline.has_passed()) detail::fail_late(left, patience, where_);
        changed_.wait_until(held, next_look(patience.deadline));
        check_interrupt(held);
    }
    std::vector<std::string> values;
    if (wants_values)
        for (const std::string &key : keys) values.push_back(values_[key]);
    return values;
}

void HashStore::wake() noexcept
{
    if (process_ != getpid()) return;
    const std::lock_guard held(mutex_);  // so that nobody is between its look and its wait
    changed_.notify_all();
}

std::optional<uint64_t> HashStore::when_set(std::string_view name, Then then)
{
    const std::string key(name);
    std::unique_lock held = lock("when_set");
    const auto known = values_.find(key);
    if (known == values_.end()) {
        waiters_[key].push_back({++last_number_, std::move(then)});
        return last_number_;
    }
    const std::string value = known->second;
    held.unlock();
    then(value);
    return 0;
}

void HashStore::forget(std::string_view key, uint64_t number) noexcept
{
    if (process_ != getpid()) return;
    Waiters dropped;  // what it holds ends without the lock
    const std::lock_guard held(mutex_);
    const auto waiting = waiters_.find(std::string(key));
    if (waiting == waiters_.end()) return;
    Waiters &all = waiting->second;
    const auto is_it = [&](const Waiter &waiter) { return waiter.number == number; };
    const auto place = std::find_if(all.begin(), all.end(), is_it);
    if (place == all.end()) return;
    dropped.push_back(std::move(*place));
    all.erase(place);
    if (all.empty()) waiters_.erase(waiting);
}

}  // namespace yoke
