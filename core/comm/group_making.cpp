// How the ranks of a group make it together.
#include "core/base/config.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/comm/group.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

namespace yoke {

namespace {

Cause interrupted(const RankInfo &self, const char *call)
{
    return {YOKE_E_CANCELLED,
            format("%s: %s was interrupted while it waited", call, describe(self).c_str())};
}

// The others are told what happened here alone. What the table itself tells names its ranks.
Cause cause_of_making(const Error &error, const RankInfo &self, const char *call)
{
    if (error.status() == YOKE_E_TIMEOUT || error.status() == YOKE_E_COMM)
        return {error.status(), error.what()};
    const std::string front = std::string(call) + ": ";
    std::string_view text = error.what();
    if (text.starts_with(front)) text.remove_prefix(front.size());
    return {error.status(), front + describe(self) + ": " + std::string(text)};
}

// Of what is being caught.
Cause cause_of_caught(const RankInfo &self, const char *call)
{
    try {
        throw;
    } catch (const Interrupted &) {
        return interrupted(self, call);
    } catch (const Error &error) {
        return cause_of_making(error, self, call);
    } catch (const std::bad_alloc &) {
        return cause_of_making(Error(YOKE_E_OOM, kNoMemoryText), self, call);
    } catch (const std::exception &error) {
        return cause_of_making(Error(YOKE_E_INTERNAL, error.what()), self, call);
    }
}

}  // namespace

void Group::fail_early(Store &store, const Cause &cause)
{
    constexpr double kPatience = 1;
    std::string stands = cause.encode();
    try {
        stands = store.set_once(kCauseKey, stands, Deadline::after(kPatience));
    } catch (const std::exception &error) {
        log(LogLevel::kInfo, "the other ranks were not told why this one fails: %s", error.what());
    }
    Cause::decode(stands).raise();
}

Ref<Group> Group::make(const Members &members, const GroupOptions &options, Deadline deadline,
                       const char *call)
{
    Ref<Group> group;
    try {
        group = begin_making(members, options, call);
    } catch (const std::exception &) {
        fail_early(*members.store, cause_of_caught(members.self(), call));
    }
    try {
        group->forget_making(group->open_engine(deadline, call));
    } catch (const EngineFailure &failure) {
        group->fail_making(failure, call);
    } catch (const std::exception &) {
        group->fail_alone(call, group->cause_of_failed_making(call));
    }
    return group;
}

// Of what is being caught; where the table has gone that is its consequence.
Cause Group::cause_of_failed_making(const char *call)
{
    Cause cause = cause_of_caught(members_.self(), call);
    try {
        check_table(call);
    } catch (const Error &error) {
        cause = {error.status(), error.what()};
    }
    return cause;
}

Ref<Group> Group::begin_making(const Members &members, const GroupOptions &options,
                               const char *call)
{
    (void)Engine::find(options.engine, call);
    (void)config("YOKE_COMM_DUMP");  // what cannot be read is told here, not when the group fails
    if (members.met) come_back_to(*members.met);
    Ref<Group> group = Ref<Group>::adopt(new Group(members, options));
    group->listen();
    return group;
}

// Who cannot make its part closes its connections, and tells why: that is the cause, not the end of a connection.
void Group::fail_making(const EngineFailure &failure, const char *call)
{
    if (failure.fault.kind == YOKE_COMM_FAULT_DIED) await_cause(call);
    CurrentCall current;
    current.making = call;
    fail_alone(call, cause_of(failure.fault, failure.status, failure.text, current, members_.self(),
                              members_.ranks));
}

Cause Group::cause_of_interrupt(const char *call) const
{
    return interrupted(members_.self(), call);
}

Cause Group::cause_of_shortage(const char *call) const
{
    return cause_of_making(Error(YOKE_E_OOM, kNoMemoryText), members_.self(), call);
}

// Others publish the cause of a failure that this rank need not meet by itself.
void Group::listen()
{
    link_ = std::make_shared<GroupLink>();
    link_->group = this;
    const auto take = [known = std::weak_ptr<GroupLink>(link_)](const std::string &value) {
        const std::shared_ptr<GroupLink> link = known.lock();
        if (!link) return;
        const std::lock_guard lock(link->mutex);
        if (link->group) link->group->fail_with(Cause::decode(value));
    };
    heard_by_ = members_.store->when_set(kCauseKey, take).value_or(0);
    if (members_.watcher) members_.watcher->watch(link_);
    note_living(link_);
}

namespace {

constexpr const char *kMadeKey = "made";  // how many are; not there once all are

std::string making_key(int gathered)
{
    return "init/" + std::to_string(gathered);
}

}  // namespace

// Whether some rank still makes its part, or could not; false where nobody can tell.
bool Group::is_half_made() const noexcept
try {
    constexpr double kPatience = 0.1;
    return members_.store->try_get(kMadeKey, Deadline::after(kPatience)).has_value();
} catch (const std::exception &) {
    return false;
}

// By the last rank that has been made. What it cannot reach at once stays until the job ends: nobody waits for a rank 0
// that has stopped since.
void Group::forget_making(int gathered) noexcept
{
    constexpr double kPatience = 0.1;
    const Deadline deadline = Deadline::after(kPatience);
    try {
        if (members_.store->add(kMadeKey, 1, deadline) != size()) return;
        Store::Keys all{kMadeKey};
        for (int each = 0; each < gathered; ++each)
            std::ranges::copy(gather_keys(making_key(each), size()), std::back_inserter(all));
        members_.store->remove_all(all, deadline);
    } catch (const std::exception &error) {
        log(LogLevel::kInfo, "a group leaves keys of its making: %s", error.what());
    }
}

int Group::open_engine(Deadline deadline, const char *call)
{
    const yoke_backend_comm &table = Engine::find(options_.engine, call);
    int gathered = 0;
    const Gather gather_next = [&](const std::string &mine) {
        return gather(*members_.store, making_key(gathered++), mine, deadline, call);
    };
    if (members_.met) ports_ = ShrinkPorts(members_.self(), gather_next);
    EngineInit init;
    init.id = agree_on_engine(table, gather_next, call);
    init.rank = rank();
    init.size = size();
    init.address = members_.self().address;
    init.timeout_s = deadline.remaining_s();
    init.patience_s = options_.timeout_s;
    init.all_gather = gather_next;
    init.is_over = [this] { return is_failed() || is_interrupted(); };
    connect_engine(table, init);
    return gathered;
}

// The id that rank 0 has made.
std::string Group::agree_on_engine(const yoke_backend_comm &table, const Gather &gather_next,
                                   const char *call) const
{
    const std::string id = rank() == 0 ? Engine::make_id(table) : std::string();
    const std::vector<std::string> told = gather_next(table.name + ("/" + id));
    check_one_engine(told, call);
    return told[0].substr(strlen(table.name) + 1);
}

void Group::connect_engine(const yoke_backend_comm &table, const EngineInit &init)
try {
    auto made = std::make_shared<Engine>(table, init);
    const std::lock_guard lock(mutex_);
    engine_ = std::move(made);
    if (cause_) engine_->abort();
} catch (const EngineFailure &) {
    Interruptible::check_here();
    throw;
}

// Each told its engine's name, a slash, and of rank 0 an id.
void Group::check_one_engine(const std::vector<std::string> &told, const char *call) const
{
    const auto name_of = [](const std::string &text) { return text.substr(0, text.find('/')); };
    for (size_t i = 1; i < told.size(); ++i)
        if (name_of(told[i]) != name_of(told[0]))
            fail(
                YOKE_E_COMM,
                "%s: ranks do not agree on the backend: %s has '%s', and %s '%s'; give all the same",
                call, yoke::describe(members_.ranks[0]).c_str(), name_of(told[0]).c_str(),
                yoke::describe(members_.ranks[i]).c_str(), name_of(told[i]).c_str());
}

}  // namespace yoke
