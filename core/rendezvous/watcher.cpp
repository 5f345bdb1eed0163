#include "core/rendezvous/watcher.h"

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/store/watch.h"

#include <atomic>
#include <optional>
#include <sstream>
#include <utility>

namespace yoke {

namespace {

void tell_one(const std::shared_ptr<GroupLink> &link, const PeerEvent &event)
{
    const std::lock_guard lock(link->mutex);
    if (link->group) link->group->hear(event);
}

std::string news_key(uint64_t number)
{
    return "news/" + std::to_string(number);
}

// Returns whether the other ranks are notified of the event, because their groups act on it. A rank that has left no
// longer matters to the other ranks.
bool is_news(const PeerEvent &event)
{
    return event.kind == PeerEvent::kSilent || event.kind == PeerEvent::kHeard ||
           event.kind == PeerEvent::kEnded;
}

std::string encode(const PeerEvent &event)
{
    return format("%d %d %.17g", event.kind, event.rank, event.silent_s);
}

std::optional<PeerEvent> decode(const std::string &text)
{
    PeerEvent event{};
    int kind = -1;
    std::istringstream in(text);
    in >> kind >> event.rank >> event.silent_s;
    event.kind = static_cast<PeerEvent::Kind>(kind);
    return in && is_news(event) ? std::optional(event) : std::nullopt;
}

void listen_from(uint64_t number, const std::weak_ptr<Watcher> &watcher,
                 const std::weak_ptr<Store> &store)
{
    const std::shared_ptr<Store> kept = store.lock();
    if (!kept) return;
    try {
        kept->when_set(news_key(number), [=](const std::string &text) {
            const std::shared_ptr<Watcher> known = watcher.lock();
            const std::optional<PeerEvent> event = decode(text);
            if (known && event) known->tell(*event);
            if (known) listen_from(number + 1, watcher, store);
        });
    } catch (const Error &error) {
        log(LogLevel::kWarn,
            "missed heartbeats of other ranks will not be reported to this rank: %s", error.what());
    }
}

// Failure at the first tick of the watch. The tick may come before `number` is set.
class LaterFailure final : public Watched {
public:
    LaterFailure(std::weak_ptr<GroupLink> link, Cause cause)
        : link_(std::move(link)), cause_(std::move(cause))
    {
    }
    void on_ready(uint32_t) noexcept override {}
    void on_tick(double) noexcept override
    {
        if (number) unwatch(number);
        const std::shared_ptr<GroupLink> link = link_.lock();
        if (!link || std::exchange(has_acted_, true)) return;
        const std::lock_guard lock(link->mutex);
        if (link->group) link->group->fail_with(cause_);
    }
    std::atomic<uint64_t> number{0};

private:
    bool has_acted_ = false;
    const std::weak_ptr<GroupLink> link_;
    const Cause cause_;
};

}  // namespace

void Watcher::listen(const std::shared_ptr<Watcher> &watcher, const std::shared_ptr<Store> &store)
{
    listen_from(0, watcher, store);
}

void Watcher::tell_in(const std::shared_ptr<Store> &store)
{
    std::map<int32_t, PeerEvent> missing;
    {
        const std::lock_guard lock(mutex_);
        store_ = store;
        missing = missing_;
    }
    for (const auto &[rank, event] : missing) tell_others(event);
}

void Watcher::tell_others(const PeerEvent &event) noexcept
{
    std::shared_ptr<Store> store;
    uint64_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        store = store_.lock();
        if (!store || !is_news(event)) return;
        number = told_++;
    }
    try {
        store->set(news_key(number), encode(event), Deadline::after(0));
    } catch (const std::exception &error) {
        log(LogLevel::kWarn, "the end of rank %d could not be reported to the other ranks: %s",
            event.rank, error.what());
    }
}

void tell_later(const std::shared_ptr<GroupLink> &link, double seconds, Cause cause)
{
    const auto later = std::make_shared<LaterFailure>(link, std::move(cause));
    later->number = watch(later, -1, 0, seconds);
}

void Watcher::watch(const std::shared_ptr<GroupLink> &link)
{
    std::map<int32_t, PeerEvent> missing;
    {
        const std::lock_guard lock(mutex_);
        std::erase_if(links_, [](const auto &each) { return each.expired(); });
        links_.push_back(link);
        missing = missing_;
    }
    for (const auto &[rank, event] : missing)
        if (still_misses(rank)) tell_one(link, event);
}

bool Watcher::still_misses(int32_t rank)
{
    const std::lock_guard lock(mutex_);
    return missing_.contains(rank);
}

bool Watcher::misses_any()
{
    const std::lock_guard lock(mutex_);
    return !missing_.empty();
}

void Watcher::tell(const PeerEvent &event)
{
    std::vector<std::weak_ptr<GroupLink>> links;
    {
        const std::lock_guard lock(mutex_);
        if (event.kind == PeerEvent::kJoined || event.kind == PeerEvent::kHeard)
            missing_.erase(event.rank);
        else if (event.kind != PeerEvent::kRefused && event.kind != PeerEvent::kShort)
            missing_.insert_or_assign(event.rank, event);
        links = links_;
    }
    tell_others(event);  // first: if a group fails, its script may end this process at once
    for (const std::weak_ptr<GroupLink> &each : links)
        if (const std::shared_ptr<GroupLink> link = each.lock()) tell_one(link, event);
}

}  // namespace yoke
