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

Ref<Group> Group::make(Members members, const GroupOptions &options, Deadline deadline,
                       const char *call)
{
    const yoke_backend_comm &table = Engine::find(options.engine, call);
    (void)config("YOKE_COMM_DUMP");  // what cannot be read is told here, not when the group fails
    const Ref<Group> group = Ref<Group>::adopt(new Group(std::move(members), options));
    group->listen();
    try {
        group->forget_making(group->open_engine(table, deadline, call));
    } catch (const EngineFailure &failure) {
        Doing doing;
        doing.making = call;
        group->fail_alone(cause_of(failure.fault, failure.status, failure.text, doing,
                                   group->members_.self(), group->members_.ranks));
    } catch (const Interrupted &) {
        group->fail_alone(group->cause_of_interrupt(call));
    } catch (const Error &error) {
        group->fail_alone(group->cause_of_making(error.status(), error.what(), call));
    } catch (const std::bad_alloc &) {
        group->fail_alone(group->cause_of_making(YOKE_E_OOM, kNoMemoryText, call));
    }
    return group;
}

// The others are told what happened here alone. What the table itself tells names its ranks.
Cause Group::cause_of_making(yoke_status status, const char *text, const char *call) const
{
    if (status == YOKE_E_TIMEOUT || status == YOKE_E_COMM) return {status, text};
    return {status,
            format("%s: %s failed: %s", call, yoke::describe(members_.self()).c_str(), text)};
}

Cause Group::cause_of_interrupt(const char *call) const
{
    return {YOKE_E_CANCELLED, format("%s: %s was interrupted while it waited", call,
                                     yoke::describe(members_.self()).c_str())};
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
}

namespace {

std::string making_key(int gathered)
{
    return "init/" + std::to_string(gathered);
}

}  // namespace

// By the last rank that has been made. What it cannot reach at once stays until the job ends: nobody waits for a rank 0
// that has stopped since.
void Group::forget_making(int gathered) noexcept
{
    constexpr double kPatience = 0.1;
    constexpr const char *kMade = "made";
    const Deadline deadline = Deadline::after(kPatience);
    try {
        if (members_.store->add(kMade, 1, deadline) != size()) return;
        Store::Keys all{kMade};
        for (int each = 0; each < gathered; ++each)
            std::ranges::copy(gather_keys(making_key(each), size()), std::back_inserter(all));
        members_.store->remove_all(all, deadline);
    } catch (const std::exception &error) {
        log(LogLevel::kInfo, "a group leaves keys of its making: %s", error.what());
    }
}

int Group::open_engine(const yoke_backend_comm &table, Deadline deadline, const char *call)
{
    int gathered = 0;
    const Gather gather_next = [&](const std::string &mine) {
        return gather(*members_.store, making_key(gathered++), mine, deadline, call);
    };
    if (members_.met) ports_ = ReunionPorts(members_.self(), gather_next);
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
