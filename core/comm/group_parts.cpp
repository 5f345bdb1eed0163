// What a group can beside its collectives: parts of it, memory for them, and who is missing.
#include "core/backend/registry.h"
#include "core/base/error.h"
#include "core/base/signals.h"
#include "core/comm/group.h"
#include "core/select/select.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>

namespace yoke {

// ---- What else it can -------------------------------------------------------------------------------------------

std::string Group::describe() const
{
    return format("rank %d of %d; %s: ", rank(), size(), engine_->name()) + engine_->describe();
}

std::vector<CallRecord> Group::records() const
{
    const std::lock_guard lock(mutex_);
    return records_.all();
}

void Group::monitored_barrier(double seconds)
{
    uint64_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        check_usable();
        number = ++barriers_;
    }
    const std::string prefix = "monitored/" + std::to_string(number) + "/";
    const Deadline deadline = Deadline::after(seconds);
    members_.store->set(prefix + std::to_string(rank()), "1", deadline);
    std::string missing;
    for (const Arrival &peer : members_.ranks) {
        try {
            members_.store->wait({prefix + std::to_string(peer.rank)}, deadline);
        } catch (const Error &error) {
            if (error.status() != YOKE_E_TIMEOUT) {
                const std::lock_guard lock(mutex_);
                check_usable();  // why the store has gone, if the group knows it
                throw;
            }
            missing += (missing.empty() ? "" : ", ") + yoke::describe(peer);
        }
    }
    if (!missing.empty())
        fail(YOKE_E_TIMEOUT, "monitored_barrier: within %g s there came not: %s", seconds,
             missing.c_str());
}

Ref<Group> Group::split(int32_t color, int64_t key)
{
    struct Place {
        int64_t key;
        int32_t color, rank;
    };
    uint64_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        check_usable();
        number = ++splits_;
    }
    const Place mine{key, color, rank()};
    const std::vector<std::string> all = all_gather(
        *members_.store, "split/" + std::to_string(number), rank(), size(),
        {reinterpret_cast<const char *>(&mine), sizeof mine}, Deadline::after(options_.timeout_s));
    if (color < 0) return nullptr;
    std::vector<Place> places;
    for (const std::string &each : all) {
        Place place;
        memcpy(&place, each.data(), sizeof place);
        if (place.color == color) places.push_back(place);
    }
    std::ranges::sort(places, {}, [](const Place &each) { return std::pair(each.key, each.rank); });
    Members part;
    for (const Place &each : places) {
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
    part.number = members_.number * 1000003 + number * 1009 + static_cast<uint64_t>(color) + 1;
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
        const std::lock_guard lock(mutex_);
        if (is_shrunk_)
            fail(YOKE_E_STATE,
                 "shrink: this group has been shrunk already; go on with the one that came of it");
        if (process_ != getpid()) check_usable();
    }
    const auto end = [this] {
        if (!is_failed())
            fail_with(agreed({YOKE_E_CANCELLED, "the group was ended by shrink() on " +
                                                    yoke::describe(members_.self())}));
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

Tensor Group::empty(IntList shape, yoke_dtype dtype)
{
    int64_t numel = 0;
    if (!count_elements(shape, numel))
        fail(YOKE_E_VALUE, "empty: the shape %s has more elements than memory can address",
             to_string(shape).c_str());
    const uint64_t bytes = static_cast<uint64_t>(numel) * item_size(dtype);
    struct Lent {
        // Not the group: its thread may be the last to let go of a tensor.
        std::shared_ptr<Engine> engine;
        void *memory;
        uint64_t bytes;
        static void drop(void *user)
        {
            const std::unique_ptr<Lent> self(static_cast<Lent *>(user));
            if (self->memory) self->engine->free(self->memory, self->bytes);
        }
    };
    auto lent = std::make_unique<Lent>(Lent{engine_, nullptr, bytes});
    try {
        lent->memory = bytes ? engine_->allocate(bytes) : nullptr;
    } catch (const EngineFailure &failure) {
        throw Error(failure.status, "empty: " + failure.text);
    }
    Tensor made = from_memory(lent->memory, shape, nullptr, dtype, open_device(kHostKind),
                              Lent::drop, lent.get(), "empty");
    (void)lent.release();
    return made;
}

}  // namespace yoke
