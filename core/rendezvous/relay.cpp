#include "core/rendezvous/relay.h"

#include "core/base/error.h"
#include "core/rendezvous/check_in.h"

namespace yoke {

namespace {

// Returns why the event keeps an incomplete job from starting, or "" if the job can still start.
std::string obstacle(const PeerEvent &event)
{
    const auto tell = [&](const char *what) {
        return format("comm.init: rank %d (%s) %s before all ranks arrived%s%s", event.rank,
                      event.about.c_str(), what, event.how.empty() ? "" : ": ", event.how.c_str());
    };
    switch (event.kind) {
        case PeerEvent::kLeft:
            if (event.how.empty()) return tell("left");
            [[fallthrough]];
        case PeerEvent::kShort:
            return format("comm.init: rank %d (%s): %s", event.rank, event.about.c_str(),
                          event.how.c_str());
        case PeerEvent::kEnded:
            return tell("died");
        case PeerEvent::kSilent:
            return tell("sent no heartbeat");
        case PeerEvent::kRefused:
            return "comm.init: " + event.how;
        default:
            return "";
    }
}

// Refuses the job's start if the event prevents the start. Does nothing without a store.
void refuse(const std::shared_ptr<Store> &store, const PeerEvent &event)
{
    const std::string why = obstacle(event);
    if (!store || why.empty()) return;
    try {
        CheckIn::refuse(*store, why, Deadline::after(0));
    } catch (const Error &) {  // aborted meanwhile
    }
}

}  // namespace

void Relay::begin(const std::shared_ptr<Store> &store)
{
    std::vector<PeerEvent> told;
    {
        const std::lock_guard lock(mutex_);
        store_ = store;
        told = told_;
    }
    for (const PeerEvent &event : told) refuse(store, event);
}

void Relay::tell(const PeerEvent &event)
{
    std::unique_lock lock(mutex_);
    const bool is_complete = is_complete_;
    if (!is_complete) told_.push_back(event);
    const std::shared_ptr<Store> store = store_.lock();
    lock.unlock();
    if (!is_complete)
        refuse(store, event);
    else if (later_)
        later_(event);
}

void Relay::complete()
{
    std::unique_lock lock(mutex_);
    while (!told_.empty()) {
        std::vector<PeerEvent> told;
        told.swap(told_);
        lock.unlock();
        if (later_)
            for (const PeerEvent &event : told) later_(event);
        lock.lock();
    }
    is_complete_ = true;
}

}  // namespace yoke
