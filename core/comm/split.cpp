#include "core/comm/split.h"

#include "core/base/error.h"
#include "core/comm/group.h"

#include <algorithm>
#include <new>
#include <utility>

namespace yoke {

namespace {

// Color and key of a rank in a split.
struct Place {
    int32_t color;
    int64_t key;
    int32_t rank;
};

// Returns the ranks with this color, in the order of the new group.
std::vector<Place> places_of(int32_t color, const std::vector<int64_t> &given)
{
    std::vector<Place> places;
    for (size_t i = 0; i < given.size() / 2; ++i)
        if (given[2 * i] == color)
            places.push_back({color, given[2 * i + 1], static_cast<int32_t>(i)});
    std::ranges::sort(places, {}, [](const Place &each) { return std::pair(each.key, each.rank); });
    return places;
}

}  // namespace

Members Split::part_of(int32_t color, const std::vector<int64_t> &given,
                       const std::string &name) const
{
    Members part;
    for (const Place &each : places_of(color, given)) {
        if (each.rank == members_.rank) part.rank = static_cast<int32_t>(part.ranks.size());
        part.ranks.push_back(members_.at(each.rank));
        part.ranks.back().rank = static_cast<int32_t>(part.ranks.size()) - 1;
        if (!members_.met_as.empty())
            part.met_as.push_back(members_.met_as[static_cast<size_t>(each.rank)]);
    }
    part.met = members_.met;
    part.watcher = members_.watcher;
    part.number = number_of_group(std::to_string(members_.number) + "/" + name);
    part.store = std::make_shared<PrefixStore>(members_.store, name);
    return part;
}

// Makes the subgroup, and returns it. If a rank's group fails before the rank joins the subgroup, the other ranks do
// not wait for the rank.
Ref<Group> Split::make_part(const Members &part)
{
    const Deadline deadline = Deadline::after(options_.init_timeout_s);
    if (members_.server() < 0) failure_.check_table("split");
    const struct View {
        View(Failure &of, const std::shared_ptr<Store> &store) : failure(of), keys(store)
        {
            failure.add_view(keys, false, "split");
        }
        ~View() { failure.remove_view(keys); }
        Failure &failure;
        const std::shared_ptr<Store> &keys;
    } until_made(failure_, part.store);
    try {
        return Group::make(part, options_, deadline, "split");
    } catch (const Error &) {
        failure_.raise_if_failed("split");
        failure_.check_table("split");
        throw;
    }
}

Ref<Group> Split::make(int32_t color, const std::vector<int64_t> &given)
{
    const uint64_t number = ++count_;
    if (color < 0) return nullptr;
    const std::string name =
        format("split/%llu/%d", static_cast<unsigned long long>(number), color);
    try {
        Ref<Group> part = make_part(part_of(color, given, name));
        // Ranks that are threads end with the process, and MPI ends before living groups do. So these groups do not
        // linger.
        if (members_.met && options_.backend != "mpi") part->let_linger();
        return part;
    } catch (const std::bad_alloc &) {
        PrefixStore part(members_.store, name);
        GroupKeys::agree_in(part, cause_of(std::current_exception(), members_.self(), "split"))
            .raise();
    }
}

}  // namespace yoke
