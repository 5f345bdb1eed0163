#include "core/comm/barrier_keys.h"

#include "core/base/text.h"
#include "core/comm/group_keys.h"

namespace yoke {

namespace {

constexpr const char *kBarriers = "monitored";
// Keys of a barrier: the count of joined ranks; the end, "" if all ranks came, else the missing ranks; and the first
// barrier that no rank has given up, or a barrier before.
constexpr const char *kCome = "come", *kEnd = "end", *kNext = "next";

std::string key_at(uint64_t barrier, const std::string &what)
{
    return std::to_string(barrier) + "/" + what;
}

std::string key_at(uint64_t barrier, int32_t rank)
{
    return key_at(barrier, std::to_string(rank));
}

std::string list_of(const std::vector<int32_t> &ranks)
{
    return joined(ranks, ",", [](int32_t rank) { return std::to_string(rank); });
}

std::vector<int32_t> ranks_in(const std::string &list)
{
    std::vector<int32_t> ranks;
    if (list.empty()) return ranks;
    for (const std::string &each : split_list(list))
        if (const auto rank = parsed<int32_t>(each)) ranks.push_back(*rank);
    return ranks;
}

}  // namespace

std::shared_ptr<Store> BarrierKeys::view() const
{
    return std::make_shared<PrefixStore>(members_.store, kBarriers);
}

// Publishes this rank's arrival by a view of its own. This view stays open when a rank dies, so no rank joins twice.
void BarrierKeys::come_to(uint64_t number, Deadline deadline) const
{
    PrefixStore keys(members_.store, kBarriers);
    const int64_t come = keys.add(key_at(number, kCome), 1, deadline);
    if (come == members_.size()) (void)keys.set_once(key_at(number, kEnd), "", deadline);
    keys.set(key_at(number, members_.rank), "", deadline);
}

bool BarrierKeys::has_ended(uint64_t number, Store &view, Deadline deadline) const
{
    return view.try_get(key_at(number, kEnd), deadline).has_value();
}

std::vector<int32_t> BarrierKeys::await_end(uint64_t number, Store &view, Deadline deadline) const
{
    return ranks_in(view.get(key_at(number, kEnd), deadline));
}

std::vector<int32_t> BarrierKeys::missing_at(uint64_t number, Store &view) const
{
    const Deadline deadline = GroupKeys::soon();
    std::vector<int32_t> missing;
    for (const RankInfo &peer : members_.ranks)
        if (!view.try_get(key_at(number, peer.rank), deadline)) missing.push_back(peer.rank);
    return missing;
}

std::vector<int32_t> BarrierKeys::give_up(uint64_t number) const
{
    PrefixStore keys(members_.store, kBarriers);
    const std::string mine = list_of(missing_at(number, keys));
    const std::string stands = keys.set_once(key_at(number, kEnd), mine, GroupKeys::soon());
    if (stands == mine) keys.set(kNext, std::to_string(number + 1), GroupKeys::soon());
    return ranks_in(stands);
}

uint64_t BarrierKeys::next() const
{
    const auto told = PrefixStore(members_.store, kBarriers).try_get(kNext, GroupKeys::soon());
    return told ? parsed<uint64_t>(*told).value_or(0) : 0;
}

bool BarrierKeys::have_all_come(uint64_t number) const noexcept
{
    bool have_come = false;
    GroupKeys::attempt(nullptr, [&] {
        PrefixStore keys(members_.store, kBarriers);
        const auto end = keys.try_get(key_at(number, kEnd), GroupKeys::soon());
        have_come = end && end->empty();
    });
    return have_come;
}

void BarrierKeys::forget(uint64_t first, uint64_t before) const noexcept
{
    constexpr double kToForget = 1;
    GroupKeys::attempt("monitored_barrier: ", [&] {
        Store::Keys all;
        for (uint64_t number = first; number < before; ++number) {
            all.push_back(key_at(number, members_.rank));
            if (members_.rank == 0)
                all.insert(all.end(), {key_at(number, kCome), key_at(number, kEnd)});
        }
        PrefixStore(members_.store, kBarriers).remove_all(all, Deadline::after(kToForget));
    });
}

}  // namespace yoke
