// What a group can beside its collectives: parts of it, and memory for them.
#include "core/backend/registry.h"
#include "core/base/error.h"
#include "core/comm/coalesce.h"
#include "core/comm/group.h"
#include "core/device/room.h"
#include "core/memory/memory.h"
#include "core/select/select.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace yoke {

// ---- What else it can -------------------------------------------------------------------------------------------

std::string Group::describe() const
{
    return format("rank %d of %d; %s: ", rank(), size(), engine_->name()) + engine_->describe();
}

std::vector<CallRecord> Group::records() const
{
    const std::unique_lock lock = lock_here();
    return records_.all();
}

int64_t Group::add_reducer(std::weak_ptr<Reducer> reducer)
{
    const std::lock_guard lock(mutex_);
    std::erase_if(reducers_, [](const auto &each) { return each.expired(); });
    reducers_.push_back(std::move(reducer));
    return ++made_reducers_;
}

std::vector<std::shared_ptr<Reducer>> Group::reducers() const
{
    const std::unique_lock lock = lock_here();
    std::vector<std::shared_ptr<Reducer>> living;
    for (const std::weak_ptr<Reducer> &each : reducers_)
        if (std::shared_ptr<Reducer> held = each.lock()) living.push_back(std::move(held));
    return living;
}

std::string Group::describe_server() const
{
    return server() < 0 ? members_.store->where()
                        : yoke::describe(members_.ranks[static_cast<size_t>(server())]);
}

std::vector<std::string> Group::gather(Store &store, const std::string &name,
                                       const std::string &mine, Deadline deadline,
                                       const char *call) const
try {
    return all_gather(store, name, rank(), size(), mine, deadline);
} catch (const Error &error) {
    if (error.status() != YOKE_E_TIMEOUT) throw;
    constexpr double kPatience = 0.1;
    std::string missing;
    try {
        for (const RankInfo &peer : members_.ranks)
            if (!store.try_get(name + "/" + std::to_string(peer.rank), Deadline::after(kPatience)))
                missing += (missing.empty() ? "" : ", ") + yoke::describe(peer);
    } catch (const Error &) {  // it does not even answer for the table
        missing = describe_server();
    }
    fail_late(call, missing, deadline);
}

void Group::fail_late(const char *call, const std::string &missing, Deadline deadline) const
{
    fail(YOKE_E_TIMEOUT, "%s: within %g s there came not: %s; see whether they are stopped", call,
         deadline.given_s(), missing.c_str());
}

// An ordinary call, so that who dies, is late or calls something else is found as in any other.
std::vector<int64_t> Group::exchange(int32_t called_as, std::vector<int64_t> mine)
{
    const char *name = collective_name(called_as);
    check_not_capturing(name);
    const auto make = [name](int64_t count) {
        return make_tensor(open_device(kHostKind), YOKE_I64, IntList(&count, 1), name);
    };
    const Tensor in = make(std::ssize(mine)), out = make(std::ssize(mine) * size());
    memcpy(in->data, mine.data(), in->nbytes());
    Collective call{YOKE_COMM_ALL_GATHER, -1, -1, in, out};
    call.called_as = called_as;
    check_collective(call, {rank(), size()});
    issue({std::move(call), nullptr, script_line()}, true);
    const auto *values = reinterpret_cast<const int64_t *>(out->data);
    return {values, values + out->numel};
}

namespace {

// What a rank gave to split.
struct Place {
    int32_t color;
    int64_t key;
    int32_t rank;
};

// Those of a color, in the order of the new group.
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

Members Group::part_of(int32_t color, const std::vector<int64_t> &given,
                       const std::string &name) const
{
    Members part;
    for (const Place &each : places_of(color, given)) {
        if (each.rank == rank()) part.rank = static_cast<int32_t>(part.ranks.size());
        part.ranks.push_back(members_.ranks[static_cast<size_t>(each.rank)]);
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

// A rank whose group fails before it comes to the part is not waited for.
Ref<Group> Group::make_part(const Members &part)
{
    const Deadline deadline = Deadline::after(options_.init_timeout_s);
    if (server() < 0) check_table("split");
    {
        std::unique_lock lock = lock_here();
        check_usable(lock, "split");
        parts_under_way_.push_back(part.store);
    }
    const struct Made {
        ~Made()
        {
            const std::lock_guard lock(group.mutex_);
            std::erase_if(group.parts_under_way_,
                          [&](const auto &each) { return each.lock() == keys; });
        }
        Group &group;
        const std::shared_ptr<Store> &keys;
    } when_made{*this, part.store};
    try {
        return make(part, options_, deadline, "split");
    } catch (const Error &) {
        check_running("split");
        check_table("split");
        throw;
    }
}

Ref<Group> Group::split(int32_t color, int64_t key)
{
    or_refuse([] { Coalescing::check_closed("split"); });
    const std::vector<int64_t> given = or_fail("split", [&] {
        return exchange(kSplitCall, {color, key});
    });
    uint64_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        number = ++splits_;
    }
    if (color < 0) return nullptr;
    const std::string name =
        format("split/%llu/%d", static_cast<unsigned long long>(number), color);
    try {
        Ref<Group> part = make_part(part_of(color, given, name));
        // Ranks that are threads end with the process; MPI is at its end before groups that still live are.
        part->may_linger_ = members_.met && options_.engine != "mpi";
        return part;
    } catch (const std::bad_alloc &) {
        PrefixStore part(members_.store, name);
        fail_early(part, cause_of_shortage("split"));
    }
}

namespace {

// Memory of an engine's, until its tensor goes. Not the group's: its thread may be the last to let go of a tensor.
struct Lent {
    std::shared_ptr<Engine> engine;
    void *memory;
    uint64_t bytes;
    Lent(std::shared_ptr<Engine> of, void *made, uint64_t size)
        : engine(std::move(of)), memory(made), bytes(size)
    {
        count_foreign(open_device(kHostKind), static_cast<int64_t>(bytes));
    }
    ~Lent()
    {
        if (memory) engine->free(memory, bytes);
        count_foreign(open_device(kHostKind), -static_cast<int64_t>(bytes));
    }
    Lent(const Lent &) = delete;
    Lent &operator=(const Lent &) = delete;
    static void drop(void *user) { delete static_cast<Lent *>(user); }
};

int64_t free_of_host()
{
    Room room;
    const bool is_known = room_on(open_device(kHostKind), &room) == YOKE_OK;
    return static_cast<int64_t>(is_known ? std::min<uint64_t>(room.free, INT64_MAX) : INT64_MAX);
}

// A host that runs out of shared memory ends programs at random.
void check_room(const std::vector<int64_t> &given, const std::vector<RankInfo> &ranks,
                uint64_t bytes)
{
    for (size_t i = 0; i < ranks.size(); ++i) {
        const auto here = std::ranges::count(ranks, ranks[i].node, &RankInfo::node);
        const double wanted = static_cast<double>(bytes) * static_cast<double>(here);
        if (wanted <= static_cast<double>(given[3 * i + 2])) continue;
        fail(
            YOKE_E_OOM,
            "empty: the %td ranks on the host of %s ask for %.0f bytes together, of which %lld are free",
            here, describe(ranks[i]).c_str(), wanted, static_cast<long long>(given[3 * i + 2]));
    }
}

// In what the first that differs does, alike on all ranks; "" where none does.
std::string unlike_memory(const std::vector<int64_t> &given, const std::vector<RankInfo> &ranks)
{
    for (size_t i = 0; i < ranks.size(); ++i) {
        const int64_t *ours = given.data(), *theirs = &given[3 * i];
        if (theirs[0] == ours[0] && theirs[1] == ours[1]) continue;
        return format(
            "empty: %s asks for %lld elements of %s, and %s for %lld of %s; all ranks make the same calls in the same order",
            describe(ranks[0]).c_str(), static_cast<long long>(ours[0]),
            name(static_cast<yoke_dtype>(ours[1])), describe(ranks[i]).c_str(),
            static_cast<long long>(theirs[0]), name(static_cast<yoke_dtype>(theirs[1])));
    }
    return "";
}

}  // namespace

// All ranks have agreed to make memory. In its turn among the calls; what fails on one of them has left the others
// waiting.
void *Group::allocate(uint64_t bytes)
{
    static constexpr double kNever = 1e9;
    const struct Turn {
        explicit Turn(Group &of) : group(of)
        {
            const Deadline none = Deadline::after(kNever);
            std::unique_lock lock(group.mutex_);
            wait_until(group.changed_, lock, none, [this] { return !group.is_running_; });
            group.check_usable(lock, "empty");
            group.is_running_ = true;
        }
        ~Turn()
        {
            const std::lock_guard lock(group.mutex_);
            group.is_running_ = false;
            group.changed_.notify_all();
        }
        Group &group;
    } turn(*this);
    try {
        return engine_->allocate(bytes);
    } catch (const EngineFailure &found) {
        fail_alone("empty",
                   {found.status,
                    format("empty: %s did not get its memory of %llu bytes that peers reach: %s",
                           yoke::describe(members_.self()).c_str(),
                           static_cast<unsigned long long>(bytes), found.text.c_str())});
    }
}

Tensor Group::empty(IntList shape, yoke_dtype dtype)
{
    const int64_t numel = or_refuse([&] {
        Coalescing::check_closed("empty");
        return checked_numel(shape, "empty");
    });
    const uint64_t bytes = static_cast<uint64_t>(numel) * item_size(dtype);
    const std::vector<int64_t> given = or_fail("empty", [&] {
        return exchange(kEmptyCall, {numel, dtype, free_of_host()});
    });
    if (const std::string unlike = unlike_memory(given, members_.ranks); !unlike.empty())
        fail_alone("empty", {YOKE_E_COMM, unlike});
    check_room(given, members_.ranks, bytes);
    void *memory = bytes ? or_fail("empty", [&] { return allocate(bytes); }) : nullptr;
    auto lent = std::make_unique<Lent>(engine_, memory, bytes);
    Tensor made = from_memory(lent->memory, shape, nullptr, dtype, open_device(kHostKind),
                              Lent::drop, lent.get(), "empty");
    (void)lent.release();
    return made;
}

}  // namespace yoke
