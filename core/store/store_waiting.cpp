#include "core/store/store_waiting.h"

#include "core/base/error.h"

#include <utility>

namespace yoke {

void WaitingCalls::add(uint64_t request, Call call)
{
    constexpr size_t kMostWaitedFor = 4096;
    constexpr size_t kMostWatched = 65536;  // keys without a waiting call
    constexpr size_t kMostBytes = size_t{64} << 20;
    const std::lock_guard lock(mutex_);
    const size_t watched = calls_.size() - waited_for_;
    const bool is_full =
        call.is_waited_for ? waited_for_ >= kMostWaitedFor : watched >= kMostWatched;
    if (is_full || bytes_ + call.bytes > kMostBytes)
        fail(
            YOKE_E_VALUE,
            "store.wait: this rank already waits for keys in %zu calls, and watches %zu keys with %zu bytes; wait in fewer calls at a time",
            waited_for_, watched, bytes_);
    const size_t bytes = call.bytes;
    const bool is_waited_for = call.is_waited_for;
    if (!calls_.try_emplace(request, std::move(call)).second)
        fail(YOKE_E_COMM, "store.wait: request %llu is already running",
             static_cast<unsigned long long>(request));
    waited_for_ += is_waited_for;
    bytes_ += bytes;
}

WaitingCalls::Call WaitingCalls::take_out(Place place)
{
    Call taken = std::move(place->second);
    calls_.erase(place);
    waited_for_ -= taken.is_waited_for;
    bytes_ -= taken.bytes;
    return taken;
}

std::optional<WaitingCalls::Call> WaitingCalls::take_if_complete(uint64_t request,
                                                                 const HashStore &table,
                                                                 std::string *awaited)
{
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(request);
    if (found == calls_.end()) return std::nullopt;
    Call &call = found->second;
    while (call.there < call.keys.size() && table.has(call.awaited())) ++call.there;
    if (call.there == call.keys.size()) return take_out(found);
    *awaited = call.awaited();
    return std::nullopt;
}

void WaitingCalls::note_waiter(uint64_t request, const std::string &key, uint64_t waiter)
{
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(request);
    if (found != calls_.end() && found->second.awaited() == key) found->second.waiter = waiter;
}

std::optional<WaitingCalls::Call> WaitingCalls::take(uint64_t request)
{
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(request);
    if (found == calls_.end()) return std::nullopt;
    return take_out(found);
}

std::map<uint64_t, WaitingCalls::Call> WaitingCalls::take_all()
{
    const std::lock_guard lock(mutex_);
    waited_for_ = bytes_ = 0;
    return std::exchange(calls_, {});
}

}  // namespace yoke
