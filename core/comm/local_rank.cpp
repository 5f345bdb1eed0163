#include "core/comm/local_rank.h"

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/comm/init.h"
#include "core/rendezvous/ancestors.h"
#include "core/rendezvous/said.h"

#include <unistd.h>

#include <cstdlib>

namespace yoke {

namespace {

// Returns the launchers of this process, without launchers that only started another launcher.
std::vector<LauncherSource> own_launchers()
{
    std::vector<LauncherSource> all = launchers(process_variable, process_launcher);
    std::erase_if(all, [](const LauncherSource &each) { return each.is_outer; });
    return all;
}

// Returns this process's number on its machine from the launchers' variables. Returns null unless the variables make
// this process a rank among several on the machine.
Said<int32_t> said_local_rank()
{
    const std::vector<LauncherSource> all = own_launchers();
    const bool is_alone = first_said(all, &LauncherSource::size).value == 1 ||
                          first_said(all, &LauncherSource::local_size).value == 1;
    if (is_alone || !first_said(all, &LauncherSource::rank)) return {};
    return first_said(all, &LauncherSource::local_rank);
}

// Returns the job named by the variables of a process; null if the variables name no job, or are invalid.
std::optional<Environment> job_of(const Lookup &variable)
try {
    return read_environment({}, variable, [](auto &, auto &) { return std::nullopt; });
} catch (const Error &error) {
    log(LogLevel::kDebug, "the variables name no job: %s", error.what());
    return std::nullopt;
}

}  // namespace

std::optional<int32_t> detail::local_rank()
{
    if (const Said<int32_t> said = said_local_rank()) return said.value;
    return local_rank_in_default_group();
}

bool detail::is_rank_beside(int32_t process)
{
    if (process == getpid()) return true;
    const auto variables = process_variables(process);
    if (!variables) return false;
    const auto theirs = job_of([&](const char *name) {
        const auto found = variables->find(name);
        return found == variables->end() ? nullptr : found->second.c_str();
    });
    const auto ours = job_of(process_variable);
    return ours && theirs && ours->job == theirs->job && ours->size == theirs->size &&
           ours->hosts == theirs->hosts && ours->port == theirs->port;
}

bool detail::is_variable_of_rank(const char *name)
{
    const Said<int32_t> said = said_local_rank();
    const char *own = getenv(name), *rank = said ? getenv(said.by.c_str()) : nullptr;
    if (!own || !rank) return false;
    const auto launcher = process_launcher(said.by, rank);
    if (!launcher) return true;
    const auto found = launcher->find(name);
    return found == launcher->end() || found->second != own;
}

}  // namespace yoke
