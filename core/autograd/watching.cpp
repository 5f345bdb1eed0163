#include "core/autograd/watching.h"

#include <algorithm>
#include <utility>

namespace yoke {

void Watching::meet(LeafNode &leaf)
{
    std::shared_ptr<LeafWatcher> watcher = leaf.watcher();
    if (!watcher || awaited_.contains(&leaf)) return;
    auto known = std::ranges::find(all_, watcher, &One::watcher);
    if (known == all_.end()) known = all_.insert(known, {std::move(watcher)});
    known->reached.push_back(Ref<LeafNode>::share(&leaf));
    awaited_.emplace(&leaf, &*known);
}

void Watching::note_use(Node &leaf, const Node &by)
{
    if (awaited_.empty()) return;
    if (const auto found = awaited_.find(&leaf); found != awaited_.end()) {
        uint64_t &oldest = found->second->oldest;
        oldest = std::min(oldest, by.sequence);
    }
}

LeafWatcher *Watching::take(Node &leaf)
{
    const auto found = awaited_.find(&leaf);
    if (found == awaited_.end()) return nullptr;
    LeafWatcher *const watcher = found->second->watcher.get();
    awaited_.erase(found);
    return watcher;
}

void Watching::begin()
{
    all_.sort([](const One &a, const One &b) { return a.watcher->order() > b.watcher->order(); });
    std::vector<LeafWatcher *> in_order;
    for (One &each : all_) {
        each.at = One::kOver;  // a begin() that raises needs no call of fail()
        each.watcher->begin(each.reached, each.oldest);
        each.at = One::kOpen;
        in_order.push_back(each.watcher.get());
    }
    for (LeafWatcher *each : in_order) each->open(in_order);
}

// Gives null for the leaves without a gradient, then ends the watchers. Calls arrive() in the order in which the walk
// reached the leaves, so ranks with equal walks use an equal order.
void Watching::finish()
{
    for (const One &each : all_)
        for (const Ref<LeafNode> &leaf : each.reached)
            if (LeafWatcher *watcher = take(*leaf)) watcher->arrive(*leaf, nullptr);
    for (One &each : all_) {
        each.at = One::kOver;  // an end() that raises needs no call of fail()
        each.watcher->end();
    }
}

void Watching::fail() noexcept
{
    for (const One &each : all_) {
        if (each.at == One::kAhead) each.watcher->refuse();
        if (each.at == One::kOpen) each.watcher->fail();
    }
}

}  // namespace yoke
