#include "core/comm/init.h"

#include "core/backend/ops.inc"
#include "core/backend/registry.h"
#include "core/base/error.h"
#include "core/base/foreign.h"
#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/base/interrupt.h"
#include "core/base/log.h"
#include "core/comm/ending.h"
#include "core/comm/living_groups.h"
#include "core/launch/error_file.h"
#include "core/machine/vendor.h"
#include "core/rendezvous/known_rendezvous.h"
#include "core/select/select.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace yoke {

namespace {

struct Default {
    Mutex mutex{LockRank::kOther};
    Ref<Group> group;
};
Default &the_default = immortal<Default>();

// Returns Yoke's version and the hash of its ops. Ranks of two builds may not understand each other's calls, so ranks
// compare this text.
std::string build_of_ranks()
{
    return format("Yoke %d.%d.%d, ops %016llx", YOKE_VERSION_MAJOR, YOKE_VERSION_MINOR,
                  YOKE_VERSION_PATCH, static_cast<unsigned long long>(YOKE_OP_TABLE_HASH));
}

// Returns the current device and its driver: "cuda: NVIDIA H200, driver 580.65.06"; the kind alone for a host device.
std::string device_of_rank()
{
    const Device &device = current_device();
    if (device.host) return device.kind();
    Machine machine;
    for (const Vendor *each : vendors()) each->read_driver(configured_root(), machine);
    return format("%s: %s, driver %s", device.kind(), device.info.name,
                  machine.driver.empty() ? "unknown" : machine.driver.c_str());
}

bool is_default_held_up(Deadline deadline)
{
    Ref<Group> group;
    {
        const std::lock_guard lock(the_default.mutex);
        group = the_default.group;
    }
    return group.present() && group->is_here() && is_held_up(*group, deadline);
}

constexpr double kSoon = 0.15;  // seconds

// Returns how many seconds the store is kept for ranks that have not left, at least 0.15. This is the time left for
// hanging calls when the function is first called.
double farewell_s()
{
    static const double seconds = std::max(kSoon, deadline_of_exit().remaining_s());
    return seconds;
}

}  // namespace

bool leave_groups()
{
    (void)farewell_s();
    if (!has_left_groups_behind() && !is_default_held_up(deadline_of_exit())) finalize_groups();
    return leave_living_groups();
}

namespace {

// Leaves all groups, then all rendezvous. If ranks did not come to calls on devices, the store is kept only for a
// short time.
void leave_all()
{
    leave_all_rendezvous(leave_groups() ? farewell_s() : kSoon);
}

// Registers leave_all for the exit of the process, once. The first try of init calls this, so later errors of the
// script count as this rank's.
void leave_all_at_exit()
{
    static std::once_flag registered;
    std::call_once(registered, [] { leave_at_exit(leave_all); });
}

// Returns whether the default group has failed; null if this process has no default group.
std::optional<bool> has_default_failed()
{
    const std::lock_guard lock(the_default.mutex);
    if (!the_default.group.present() || !the_default.group->is_here()) return {};
    return the_default.group->is_failed();
}

// Returns whether variables and arguments still name the job of the last rendezvous. If they name another job, gives
// up a rendezvous whose group has failed or misses ranks, and returns false. Raises YOKE_E_STATE if the default group
// is still healthy.
bool is_still_meant(const JobRendezvous &last, const char *call)
{
    const std::string now =
        describe(read_environment(last.arguments, process_variable, process_launcher));
    if (now == last.met->told) return true;
    const std::optional<bool> has_failed = has_default_failed();
    const bool is_over = has_failed.value_or(false) || last.watcher->misses_any();
    if (has_failed && !is_over)
        fail_in(
            call, YOKE_E_STATE,
            "this process is %s, but its variables or arguments (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT) now say %s; release its group before another job begins, or give init_method, rank and world_size as arguments",
            last.met->told.c_str(), now.c_str());
    if (is_over) give_up(last);
    return false;
}

JobRendezvous new_rendezvous(const InitOptions &options, Deadline deadline)
{
    const double silence_s = configured_silence();
    const auto watcher = std::make_shared<Watcher>();
    RendezvousOptions how;
    how.arguments = options.arguments;
    how.deadline = deadline;
    how.build = build_of_ranks();
    how.device = device_of_rank();
    how.host_store = options.host_store;
    how.silence_s = silence_s;
    how.observer = [watcher](const PeerEvent &event) { watcher->tell(event); };
    JobRendezvous made{options.arguments, hold(meet(how)), watcher};
    if (made.met->server)
        watcher->tell_in(made.met->store);
    else
        Watcher::listen(watcher, made.met->store);
    // Over a file, ranks find each other anew each time, so a fresh process finds a process that has the file open.
    // The content of a store of the host program is no argument.
    if (options.arguments.init_method.starts_with("file://") || options.host_store) return made;
    remember(made);
    return made;
}

// Returns a new group over the last rendezvous. Returns null if ranks have gone, so the ranks need a new rendezvous.
// A rank that gave up before this rank came, or while this rank waits, has gone on to the next rendezvous.
Ref<Group> group_where_met(const JobRendezvous &last, const GroupOptions &how, Deadline deadline,
                           const char *call)
{
    while (!last.watcher->misses_any()) try {
            Members members = members_where_met(last, deadline);
            members.is_again = true;
            return Group::make(std::move(members), how, deadline, call);
        } catch (const Error &error) {
            const bool is_late = error.status() == YOKE_E_TIMEOUT;
            if (is_late ? deadline.has_passed() : error.status() != YOKE_E_COMM) throw;
            log(LogLevel::kInfo, "%s: the ranks start a new rendezvous: %s", call, error.what());
            if (!is_late) break;
        }
    give_up(last);
    return nullptr;
}

// Logs how the ranks of the group reach each other, where the rank's number comes from, and variables of other
// libraries.
void log_how(const Group &group, const Rendezvous &met)
{
    log(LogLevel::kInfo, "comm.init: %s; the rank comes from %s", group.describe().c_str(),
        met.source.c_str());
    for (const ForeignVariable &each : foreign_variables())
        log(LogLevel::kInfo, "comm.init: %s is '%s': %s", each.name.c_str(), each.text.c_str(),
            each.says.c_str());
}

// Registers, once, an exit handler that leaves the groups before the module ends MPI, because MPI's end waits for
// ranks that may wait for this rank. Exit handlers run in reverse order of their registration.
void leave_groups_before_mpi()
{
    static std::once_flag registered;
    std::call_once(registered, [] { leave_at_exit([] { (void)leave_groups(); }); });
}

// Returns a group over the known rendezvous, or over a new rendezvous. Returns null if another thread made a
// rendezvous meanwhile, perhaps for this call too; the caller then tries again.
Ref<Group> met_group(const InitOptions &options, const GroupOptions &how, Deadline deadline,
                     const char *call)
{
    const std::optional<JobRendezvous> last =
        options.host_store ? std::nullopt : known_rendezvous(options.arguments);
    Ref<Group> group =
        last && is_still_meant(*last, call) ? group_where_met(*last, how, deadline, call) : nullptr;
    if (group.present()) return group;
    const RendezvousTurn turn(options.arguments, deadline, call);
    if (turn.has_waited()) return nullptr;
    const JobRendezvous met = new_rendezvous(options, deadline);
    try {
        group = Group::make(members_of(met), how, deadline, call);
        log_how(*group, *met.met);
        return group;
    } catch (...) {
        leave_soon(met.met);
        throw;
    }
}

Ref<Group> met_group(const InitOptions &options, const char *call)
{
    check_seconds(options.timeout_s, "timeout", call);
    check_seconds(options.init_timeout_s, "init_timeout", call);
    GroupOptions how;
    how.backend = options.backend;
    how.device = options.device;
    how.timeout_s = options.timeout_s;
    how.init_timeout_s = options.init_timeout_s;
    (void)Engine::find(host_engine_of(how.backend), call);
    const Deadline deadline = Deadline::after(options.init_timeout_s);
    Ref<Group> group;
    while (!group.present()) group = met_group(options, how, deadline, call);
    if (how.backend == "mpi") leave_groups_before_mpi();
    return group;
}

// Reports the error to the launcher, and raises it with the name of the call in front. Errors of a store's files and
// of settings do not name the call.
[[noreturn]] void fail_init(const Error &error, const char *call)
{
    const std::string text =
        error.call() == call ? error.what() : std::string(call) + ": " + error.what();
    tell_launcher(text);
    throw Error(error.status(), text).naming(std::string_view(call).size());
}

}  // namespace

void check_seconds(double seconds, const char *argument, const char *call)
{
    if (!(seconds > 0))
        fail_in(call, YOKE_E_VALUE, "argument '%s' is %g; it must be above 0 seconds", argument,
                seconds);
}

Ref<Group> init_group(const InitOptions &options, const char *call)
try {
    leave_all_at_exit();
    Ref<Group> group = met_group(options, call);
    take_back_told();
    Ref<Group> former;  // the release takes locks
    const std::lock_guard lock(the_default.mutex);
    if (!the_default.group.present() || !the_default.group->is_here() ||
        the_default.group->is_failed())
        former = std::exchange(the_default.group, group);
    return group;
} catch (const Interrupted &error) {
    tell_launcher(error.what());
    throw;
} catch (const Error &error) {
    fail_init(error, call);
} catch (const std::bad_alloc &) {
    fail_init(Error(YOKE_E_OOM, kNoMemoryText), call);
}

Ref<Group> shrink_group(Group &group, double seconds)
{
    Ref<Group> made = group.shrink(seconds), former;
    const std::lock_guard lock(the_default.mutex);
    if (the_default.group.get() == &group) {
        former = std::move(the_default.group);
        the_default.group = made;
    }
    return made;
}

Ref<Group> default_group(const char *call)
{
    const std::lock_guard lock(the_default.mutex);
    if (!the_default.group.present())
        fail(YOKE_E_STATE, "%s: this process has no group yet; call init first", call);
    return the_default.group;
}

std::optional<int32_t> local_rank_in_default_group()
{
    const std::lock_guard lock(the_default.mutex);
    if (!the_default.group.present() || !the_default.group->is_here()) return {};
    const RankInfo &self =
        the_default.group->ranks()[static_cast<size_t>(the_default.group->rank())];
    return self.local_size > 1 ? std::optional(self.local_rank) : std::nullopt;
}

void finalize_groups() noexcept
{
    Ref<Group> last;
    const std::lock_guard lock(the_default.mutex);
    std::swap(last, the_default.group);
}

}  // namespace yoke
