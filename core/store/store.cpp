#include "core/store/store.h"

#include "core/base/error.h"
#include "core/base/text.h"

namespace yoke {

void Stop::raise(yoke_status status, std::string_view why, size_t call_size)
{
    const std::lock_guard lock(mutex_);
    if (is_raised_.load()) return;
    status_ = status;
    why_ = why;
    call_size_ = call_size;
    is_raised_.store(true, std::memory_order_release);
}

void Stop::check() const
{
    if (is_raised_.load(std::memory_order_acquire)) throw Error(status_, why_).naming(call_size_);
    if (of_) of_->check();
}

namespace {

// Checks the conditions of every call, and returns the key: a length of 1 to 1024 bytes, and a store not yet aborted.
// Raises YOKE_E_VALUE or the error of the abort.
std::string checked(const char *call, std::string_view key, const Stop &stop)
{
    stop.check();
    if (key.empty() || key.size() > Store::kLongestKey)
        fail(YOKE_E_VALUE, "store.%s: the key has %zu bytes; it must have 1 to %zu", call,
             key.size(), Store::kLongestKey);
    return std::string(key);
}

void check_value(const char *call, const std::string &key, std::string_view value)
{
    if (value.size() > Store::kLongestValue)
        fail(
            YOKE_E_VALUE,
            "store.%s: the value of '%s' has %zu bytes; it must have at most %zu, so send the value in parts",
            call, key.c_str(), value.size(), Store::kLongestValue);
}

void check_keys(const char *call, const Store::Keys &keys, const Stop &stop)
{
    for (const std::string &key : keys) checked(call, key, stop);
    if (keys.size() > Store::kMostKeys)
        fail(YOKE_E_VALUE, "store.%s: the call names %zu keys; it must name at most %zu", call,
             keys.size(), Store::kMostKeys);
}

}  // namespace

const char *Store::Request::name() const noexcept
{
    constexpr const char *kNames[] = {"set", "get", "get", "add", "try_get", "set_once", "remove"};
    return kNames[kind];
}

void Store::set(std::string_view key, std::string_view value, Deadline deadline)
{
    const std::string name = checked("set", key, stop_);
    check_value("set", name, value);
    serve({Request::kSet, {name}, value}, {deadline, &stop_});
}

std::string Store::get(std::string_view key, Deadline deadline)
{
    return serve({Request::kGet, {checked("get", key, stop_)}}, {deadline, &stop_}).front();
}

std::vector<std::string> Store::get_all(const Keys &keys, Deadline deadline)
{
    check_keys("get_all", keys, stop_);
    if (keys.empty()) return {};
    return serve({Request::kGet, keys}, {deadline, &stop_});
}

void Store::wait(const Keys &keys, Deadline deadline)
{
    check_keys("wait", keys, stop_);
    if (!keys.empty()) serve({Request::kWait, keys}, {deadline, &stop_});
}

int64_t Store::add(std::string_view key, int64_t delta, Deadline deadline)
{
    const std::string name = checked("add", key, stop_);
    const auto sum = serve({Request::kAdd, {name}, {}, delta}, {deadline, &stop_});
    return detail::sum_of(name, sum.front(), 0);
}

std::optional<std::string> Store::try_get(std::string_view key, Deadline deadline)
{
    auto found = serve({Request::kTryGet, {checked("try_get", key, stop_)}}, {deadline, &stop_});
    if (found.empty()) return std::nullopt;
    return std::move(found.front());
}

std::string Store::set_once(std::string_view key, std::string_view value, Deadline deadline)
{
    const std::string name = checked("set_once", key, stop_);
    check_value("set_once", name, value);
    return serve({Request::kSetOnce, {name}, value}, {deadline, &stop_}).front();
}

void Store::remove(std::string_view key, Deadline deadline)
{
    serve({Request::kRemove, {checked("remove", key, stop_)}}, {deadline, &stop_});
}

void Store::remove_all(const Keys &keys, Deadline deadline)
{
    for (const std::string &key : keys) checked("remove_all", key, stop_);
    for (size_t first = 0; first < keys.size(); first += kMostKeys) {
        const size_t end = std::min(first + kMostKeys, keys.size());
        serve({Request::kRemove, {keys.data() + first, keys.data() + end}}, {deadline, &stop_});
    }
}

std::optional<uint64_t> Store::when_set(std::string_view, Then)
{
    return std::nullopt;
}

bool Store::offer(std::string_view, std::string_view)
{
    return false;
}

void Store::forget(std::string_view, uint64_t) noexcept {}

void Store::abort(yoke_status status, std::string_view why, size_t call_size) noexcept
{
    stop_.raise(status, why, call_size);
    wake();
}

Store::Keys gather_keys(std::string_view name, int32_t size)
{
    Store::Keys keys;
    for (int32_t of = 0; of < size; ++of)
        keys.push_back(std::string(name) + "/" + std::to_string(of));
    return keys;
}

std::vector<std::string> all_gather(Store &store, std::string_view name, int32_t rank, int32_t size,
                                    std::string_view mine, Deadline deadline)
{
    const Store::Keys keys = gather_keys(name, size);
    store.set(keys[static_cast<size_t>(rank)], mine, deadline);
    return store.get_all(keys, deadline);
}

namespace detail {

std::string key_list(const Store::Keys &keys)
{
    constexpr size_t kMost = 16;
    std::string text;
    for (size_t i = 0; i < std::min(keys.size(), kMost); ++i)
        text += (i == 0 ? "'" : ", '") + keys[i] + "'";
    return keys.size() <= kMost ? text
                                : format("%s and %zu more", text.c_str(), keys.size() - kMost);
}

void fail_late(const Store::Keys &missing, const Patience &patience, const std::string &where)
{
    fail(
        YOKE_E_TIMEOUT,
        "store.get: timed out; no rank set %s within %g s in the store of %s; check the ranks that should set it, or use a longer timeout",
        key_list(missing).c_str(), patience.deadline.given_s(), where.c_str());
}

void fail_forked(const char *call)
{
    fail(
        YOKE_E_FORKED,
        "store.%s: the store belongs to the parent process; a forked child must join the job with its own store",
        call);
}

int64_t sum_of(const std::string &key, std::string_view former, int64_t delta)
{
    const std::optional<int64_t> number = parsed<int64_t>(former);
    int64_t sum = 0;
    if (number && !__builtin_add_overflow(*number, delta, &sum)) return sum;
    fail(
        YOKE_E_VALUE,
        "store.add: '%s' is '%.40s', to which %lld cannot be added; use add only with keys that add created",
        key.c_str(), std::string(former).c_str(), static_cast<long long>(delta));
}

}  // namespace detail

}  // namespace yoke
