// What a group can beside its collectives: parts of it, memory for them, and who is missing.
#include "core/backend/registry.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/signals.h"
#include "core/comm/group.h"
#include "core/device/room.h"
#include "core/launch/error_file.h"
#include "core/select/select.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>
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
        for (const Arrival &peer : members_.ranks)
            if (!store.try_get(name + "/" + std::to_string(peer.rank), Deadline::after(kPatience)))
                missing += (missing.empty() ? "" : ", ") + yoke::describe(peer);
    } catch (const Error &) {  // it does not even answer for the table
        missing = describe_server();
    }
    fail(YOKE_E_TIMEOUT, "%s: within %g s there came not: %s; see whether they are stopped", call,
         deadline.given_s(), missing.c_str());
}

void Group::monitored_barrier(double seconds)
{
    uint64_t number = 0;
    {
        const std::unique_lock lock = lock_here();
        check_usable();
        number = ++barriers_;
    }
    const Meeting meeting(*this, "monitored_barrier");
    try {
        (void)gather(*barrier_keys_, std::to_string(number), "", Deadline::after(seconds),
                     "monitored_barrier");
    } catch (const Error &error) {
        if (error.status() == YOKE_E_TIMEOUT) throw;
        if (have_all_come(number)) return;
        await_cause();
        throw;
    }
    forget_barriers(number);
}

// To a barrier that has ended, though this rank is told of what failed behind it first.
bool Group::have_all_come(uint64_t barrier) const noexcept
try {
    constexpr double kPatience = 0.1;
    PrefixStore keys(members_.store, "monitored");
    const Deadline deadline = Deadline::after(kPatience);
    return std::ranges::all_of(
        gather_keys(std::to_string(barrier), size()),
        [&](const std::string &key) { return keys.try_get(key, deadline).has_value(); });
} catch (const std::exception &) {  // the table has gone
    return false;
}

// Why the table has gone, as the group is about to learn.
void Group::await_cause() const
{
    constexpr std::chrono::milliseconds kPatience{500};
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [this] { return cause_.has_value(); });
    check_usable();
}

// All ranks have come to this one, so that none looks at those before it. What fails stays there.
void Group::forget_barriers(uint64_t before) noexcept
try {
    constexpr double kPatience = 1;
    uint64_t first = 0;
    {
        const std::lock_guard lock(mutex_);
        first = std::exchange(kept_barrier_, std::max(kept_barrier_, before));
    }
    for (uint64_t number = first; number < before; ++number)
        barrier_keys_->remove(format("%llu/%d", static_cast<unsigned long long>(number), rank()),
                              Deadline::after(kPatience));
} catch (const std::exception &error) {
    log(LogLevel::kInfo, "monitored_barrier: %s", error.what());
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

Ref<Group> Group::split(int32_t color, int64_t key)
{
    const std::vector<int64_t> given = exchange(kSplitCall, {color, key});
    uint64_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        number = ++splits_;
    }
    if (color < 0) return nullptr;
    Members part;
    for (const Place &each : places_of(color, given)) {
        if (each.rank == rank()) part.rank = static_cast<int32_t>(part.ranks.size());
        part.ranks.push_back(members_.ranks[static_cast<size_t>(each.rank)]);
        part.ranks.back().rank = static_cast<int32_t>(part.ranks.size()) - 1;
        if (!members_.met_as.empty())
            part.met_as.push_back(members_.met_as[static_cast<size_t>(each.rank)]);
    }
    const std::string name =
        format("split/%llu/%d", static_cast<unsigned long long>(number), color);
    part.met = members_.met;
    part.watcher = members_.watcher;
    part.number = number_of_group(std::to_string(members_.number) + "/" + name);
    part.store = std::make_shared<PrefixStore>(members_.store, name);
    return make(std::move(part), options_, "split");
}

namespace {

// Acts after some time, unless its scope ends before; at once where the system gives no thread for it.
class Later {
public:
    Later(double seconds, const std::function<void()> &act)
    {
        const auto wait = [this, seconds, act] {
            std::unique_lock lock(mutex_);
            const std::chrono::duration<double> most(seconds);
            if (!ended_.wait_for(lock, most, [this] { return is_over_; })) act();
        };
        try {
            const HostSignalsBlocked blocked;
            thread_ = std::thread(wait);
        } catch (const std::system_error &) {
            act();
        }
    }
    ~Later()
    {
        {
            const std::lock_guard lock(mutex_);
            is_over_ = true;
            ended_.notify_all();
        }
        if (thread_.joinable()) thread_.join();
    }
    Later(const Later &) = delete;
    Later &operator=(const Later &) = delete;

private:
    std::mutex mutex_;
    std::condition_variable ended_;
    bool is_over_ = false;
    std::thread thread_;
};

}  // namespace

Ref<Group> Group::shrink(double seconds)
{
    if (!(seconds > 0))
        fail(YOKE_E_VALUE, "shrink: argument 'timeout' is %g; it takes seconds, more than 0",
             seconds);
    {
        const std::unique_lock lock = lock_here();
        if (is_shrunk_)
            fail(YOKE_E_STATE,
                 "shrink: this group has been shrunk already; go on with the one that came of it");
    }
    const Meeting meeting(*this, "shrink");
    const auto end = [this] {
        if (!is_failed())
            fail_with(agreed(
                {YOKE_E_CANCELLED,
                 "the group was ended by shrink() on " + yoke::describe(members_.self()), true}));
    };
    Members members;
    {
        // A rank may be on its way out of the call before, which is not to fail; but none waits here for one that
        // waits for this one.
        constexpr double kMost = 1;
        const Later later(std::min(kMost, seconds / 4), end);
        members = reunite(seconds);
    }
    end();
    const Ref<Group> made = make(std::move(members), options_, "shrink");
    take_back_told();
    const std::lock_guard lock(mutex_);
    is_shrunk_ = true;
    return made;
}

Members Group::reunite(double seconds)
{
    const Deadline deadline = Deadline::after(seconds);
    if (ports_.present()) return reunite_processes(members_, ports_, deadline);
    return reunite_threads(members_, ++shrinks_, deadline);
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
    }
    ~Lent()
    {
        if (memory) engine->free(memory, bytes);
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
void check_room(const std::vector<int64_t> &given, const std::vector<Arrival> &ranks,
                uint64_t bytes)
{
    for (size_t i = 0; i < ranks.size(); ++i) {
        const auto here = std::ranges::count(ranks, ranks[i].node, &Arrival::node);
        const double wanted = static_cast<double>(bytes) * static_cast<double>(here);
        if (wanted <= static_cast<double>(given[3 * i + 2])) continue;
        fail(
            YOKE_E_OOM,
            "empty: the %td ranks on the host of %s ask for %.0f bytes together, of which %lld are free",
            here, describe(ranks[i]).c_str(), wanted, static_cast<long long>(given[3 * i + 2]));
    }
}

// All ranks see what all gave, and raise alike.
void check_alike(const std::vector<int64_t> &given, const std::vector<Arrival> &ranks)
{
    for (size_t i = 0; i < ranks.size(); ++i) {
        const int64_t *ours = given.data(), *theirs = &given[3 * i];
        if (theirs[0] == ours[0] && theirs[1] == ours[1]) continue;
        fail(
            YOKE_E_COMM,
            "empty: %s asks for %lld elements of %s, and %s for %lld of %s; all ranks make the same calls in the same order",
            describe(ranks[0]).c_str(), static_cast<long long>(ours[0]),
            name(static_cast<yoke_dtype>(ours[1])), describe(ranks[i]).c_str(),
            static_cast<long long>(theirs[0]), name(static_cast<yoke_dtype>(theirs[1])));
    }
}

}  // namespace

// All ranks have agreed to make memory. In its turn among the calls; what fails on one of them has left the others
// waiting.
void *Group::allocate(uint64_t bytes)
{
    const struct Turn {
        explicit Turn(Group &of) : group(of)
        {
            std::unique_lock lock(group.mutex_);
            group.changed_.wait(lock, [this] { return !group.is_running_; });
            group.check_usable();
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
        fail_alone({found.status,
                    format("empty: %s did not get its memory of %llu bytes that peers reach: %s",
                           yoke::describe(members_.self()).c_str(),
                           static_cast<unsigned long long>(bytes), found.text.c_str())});
    }
}

Tensor Group::empty(IntList shape, yoke_dtype dtype)
{
    const int64_t numel = checked_numel(shape, "empty");
    const uint64_t bytes = static_cast<uint64_t>(numel) * item_size(dtype);
    const std::vector<int64_t> given = exchange(kEmptyCall, {numel, dtype, free_of_host()});
    check_alike(given, members_.ranks);
    check_room(given, members_.ranks, bytes);
    auto lent = std::make_unique<Lent>(engine_, bytes ? allocate(bytes) : nullptr, bytes);
    Tensor made = from_memory(lent->memory, shape, nullptr, dtype, open_device(kHostKind),
                              Lent::drop, lent.get(), "empty");
    (void)lent.release();
    return made;
}

}  // namespace yoke
