#include "core/store/store_hash.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"

#include <unistd.h>

namespace yoke {

namespace {

size_t bytes_of(const std::string &key)
{
    constexpr size_t kBeside = 128;  // two strings and a place in the map
    return key.size() + kBeside;
}

}  // namespace

HashStore::HashStore(std::string where) : where_(std::move(where)), process_(getpid()) {}

// Locks the table. Raises YOKE_E_FORKED in a forked child: another thread may have held the lock at the fork, and is
// not in the child.
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
            "store.%s: with '%s' the store would have %zu bytes; at most %zu fit, so remove keys that are no longer needed",
            call, key.c_str(), bytes_ + more, kMostBytes);
}

std::vector<std::string> HashStore::serve(const Request &request, const Patience &patience)
{
    if (request.kind == Request::kGet || request.kind == Request::kWait)
        return await(request, patience);
    if (request.kind != Request::kTryGet && request.kind != Request::kRemove)
        return Keys(1, change(request));
    const std::unique_lock held = lock(request.name());
    if (request.kind == Request::kTryGet) {
        const auto known = values_.find(request.keys.front());
        if (known != values_.end()) return Keys(1, known->second);
    } else {
        for (const std::string &key : request.keys) erase(key);
    }
    return {};
}

// Changes a key by set, set_once or add, then calls the key's waiters without the lock. Returns the value in the
// store.
std::string HashStore::change(const Request &request)
{
    const std::string &key = request.keys.front();
    std::unique_lock held = lock(request.name());
    const auto known = values_.find(key);
    const bool is_there = known != values_.end();
    if (is_there && request.kind == Request::kSetOnce) return known->second;
    std::string value(request.value);
    if (request.kind == Request::kAdd)
        value = std::to_string(detail::sum_of(key, is_there ? known->second : "0", request.delta));
    check_room(request.name(), key, value);
    const Waiters waiters = put(key, value);
    held.unlock();
    for (const Waiter &waiter : waiters) waiter.then(value);
    return value;
}

void HashStore::erase(const std::string &key)
{
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

std::vector<std::string> HashStore::await(const Request &request, const Patience &patience)
{
    std::unique_lock held = lock(request.name());
    for (Keys left = request.keys;;) {
        patience.stop->check();
        left = missing_under_lock(left);
        if (left.empty()) break;
        if (patience.deadline.has_passed()) detail::fail_late(left, patience, where_);
        changed_.wait_until(held, next_look(patience.deadline));
        check_interrupt(held);
    }
    std::vector<std::string> values;
    if (request.kind == Request::kGet)
        for (const std::string &key : request.keys) values.push_back(values_[key]);
    return values;
}

void HashStore::wake() noexcept
{
    if (process_ != getpid()) return;
    const std::lock_guard held(mutex_);  // so no call is between its check and its wait
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
    Waiters dropped;  // released without the lock
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
