// The launchers known to Yoke, each recognized by its variables.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/launch/variables.h"
#include "core/rendezvous/init_call.h"
#include "core/rendezvous/said.h"

#include <span>

namespace yoke {

Said<std::string> said_text(const Lookup &variable, const char *name)
{
    const char *text = variable(name);
    return text && *text ? Said<std::string>{name, text} : Said<std::string>{};
}

Said<std::vector<std::string>> said_host(const Lookup &variable, const char *name)
{
    const Said<std::string> text = said_text(variable, name);
    if (!text) return {};
    std::string_view host = text.value;  // "[::1]" as in a URL
    if (host.size() > 2 && host.front() == '[' && host.back() == ']')
        host = host.substr(1, host.size() - 2);
    return {name, {std::string(host)}};
}

Said<int32_t> said_number(const Lookup &variable, const char *name)
{
    const Said<std::string> text = said_text(variable, name);
    if (!text) return {};
    const auto number = parsed<int32_t>(text.value);
    if (number && *number >= 0) return {name, *number};
    fail_in(kInitCall, YOKE_E_VALUE, "%s is '%s'; it must be a whole number of 0 or more", name,
            text.value.c_str());
}

Said<uint16_t> said_port(const Lookup &variable, const char *name)
{
    const Said<std::string> text = said_text(variable, name);
    if (!text) return {};
    const auto number = parsed<uint16_t>(text.value);
    if (number && *number > 0) return {name, *number};
    fail_in(kInitCall, YOKE_E_VALUE,
            "%s is '%s'; it must be a port, a whole number from 1 to 65535", name,
            text.value.c_str());
}

namespace {

template <class T>
Said<T> first_of(const Said<T> &one, const Said<T> &other)
{
    return one ? one : other;
}

// Reads the variables of torchrun and yoke run. Kubeflow's operator and people use these names too.
LauncherSource by_rank(const Lookup &variable)
{
    LauncherSource source;
    source.rank = said_number(variable, "RANK");
    source.size = said_number(variable, "WORLD_SIZE");
    source.local_rank = said_number(variable, "LOCAL_RANK");
    source.local_size = said_number(variable, "LOCAL_WORLD_SIZE");
    source.hosts = said_host(variable, "MASTER_ADDR");
    source.port = said_port(variable, "MASTER_PORT");
    // A torchrun started by yoke run is the inner launcher. The opposite case does not occur: yoke run removes
    // torchrun's variable.
    const Said<std::string> torch = said_text(variable, "TORCHELASTIC_RUN_ID");
    const Said<std::string> run = first_of(torch, said_text(variable, kRunVariable));
    const char *name = torch ? "torchrun" : "yoke run";
    source.name = run ? name : "RANK and WORLD_SIZE";
    if (!run) return source;
    source.run = run;
    source.job = source.name + " " + run.value;
    source.epoch = said_number(variable, "TORCHELASTIC_RESTART_COUNT").value;
    source.agent_store =
        torch && said_text(variable, "TORCHELASTIC_USE_AGENT_STORE").value == "True";
    return source;
}

LauncherSource by_pmix(const Lookup &variable)
{
    LauncherSource source;
    source.name = "PMIx";
    // If Open MPI's MPI_Init found no launcher, the process has made itself rank 0 of a job of its own.
    if (said_text(variable, "OMPI_MCA_ess").value == "singleton") return source;
    source.rank = said_number(variable, "PMIX_RANK");
    const Said<std::string> space = said_text(variable, "PMIX_NAMESPACE");
    if (space) source.job = "PMIx " + space.value;
    return source;
}

LauncherSource by_open_mpi(const Lookup &variable)
{
    LauncherSource source;
    source.name = "Open MPI";
    source.rank = said_number(variable, "OMPI_COMM_WORLD_RANK");
    source.size = said_number(variable, "OMPI_COMM_WORLD_SIZE");
    source.local_rank = said_number(variable, "OMPI_COMM_WORLD_LOCAL_RANK");
    source.local_size = said_number(variable, "OMPI_COMM_WORLD_LOCAL_SIZE");
    source.is_inner =
        static_cast<bool>(source.rank);  // a Slurm step has Open MPI's daemons, not its ranks
    const Said<std::string> uri = said_text(variable, "OMPI_MCA_orte_hnp_uri");
    if (!uri) return source;
    source.job = "Open MPI " + uri.value.substr(0, uri.value.find(';'));
    std::vector<std::string> hosts = hosts_of_hnp(uri.value);
    if (!hosts.empty()) source.hosts = {uri.by, std::move(hosts)};
    return source;
}

// Returns how many tasks a node has by Slurm's list of all nodes, "2(x3),1". Returns nullopt if the list cannot be
// read or does not reach the node.
std::optional<int32_t> tasks_of_node(std::string_view list, int64_t node)
{
    while (!list.empty()) {
        const std::string_view part = list.substr(0, list.find(','));
        list.remove_prefix(std::min(list.size(), part.size() + 1));
        const size_t bracket = part.find("(x");
        const auto tasks = parsed<int32_t>(std::string(part.substr(0, bracket)));
        int64_t nodes = 1;
        if (bracket != part.npos) {
            const size_t begin = bracket + 2;
            const auto count =
                parsed<int32_t>(std::string(part.substr(begin, part.find(')') - begin)));
            if (!count) return std::nullopt;
            nodes = *count;
        }
        if (!tasks) return std::nullopt;
        if (node < nodes) return tasks;
        node -= nodes;
    }
    return std::nullopt;
}

// Returns how many tasks of the Slurm step run on this node. Returns an empty value if a variable is missing. If the
// list does not fit the task's own number, the list belongs to another step, and the value is empty too.
Said<int32_t> slurm_local_size(const Lookup &variable, const Said<int32_t> &local_rank)
{
    const Said<std::string> list = said_text(variable, "SLURM_STEP_TASKS_PER_NODE");
    const Said<int32_t> node = said_number(variable, "SLURM_NODEID");
    if (!list || !node || !local_rank) return {};
    const auto tasks = tasks_of_node(list.value, node.value);
    return tasks && local_rank.value < *tasks ? Said<int32_t>{list.by, *tasks} : Said<int32_t>{};
}

// Reads the variables of a Slurm step. Outside a step, returns a source without values: the script of a batch job has
// SLURM_PROCID as well, and is no rank. Raises YOKE_E_VALUE for values that cannot be read.
LauncherSource by_slurm(const Lookup &variable)
{
    LauncherSource source;
    const Said<std::string> step = said_text(variable, "SLURM_STEP_ID");
    const Said<std::string> list =
        first_of(said_text(variable, "SLURM_STEP_NODELIST"), said_text(variable, "SLURM_NODELIST"));
    if (!step && !said_text(variable, "SLURM_STEP_NODELIST")) return source;
    const std::string job = said_text(variable, "SLURM_JOB_ID").value;
    source.name = "Slurm step " + job + "." + step.value;
    source.job = source.name;
    source.rank = said_number(variable, "SLURM_PROCID");
    source.size = first_of(said_number(variable, "SLURM_STEP_NUM_TASKS"),
                           said_number(variable, "SLURM_NTASKS"));
    source.local_rank = said_number(variable, "SLURM_LOCALID");
    source.local_size = slurm_local_size(variable, source.local_rank);
    source.epoch = said_number(variable, "SLURM_RESTART_COUNT").value;
    if (!list) return source;
    try {
        source.hosts = {list.by, {first_slurm_host(list.value)}};
    } catch (const Error &error) {
        fail_in(kInitCall, error.status(), "%s: %s", list.by.c_str(), error.what());
    }
    return source;
}

// Returns the number of ranks as int32_t. If the number is too large, raises YOKE_E_VALUE with `by`, the variable
// that counts nodes.
int32_t ranks_of_nodes(const std::string &by, int64_t ranks)
{
    if (ranks <= INT32_MAX) return static_cast<int32_t>(ranks);
    fail_in(kInitCall, YOKE_E_VALUE,
            "%s with PET_NPROC_PER_NODE ranks on each node makes %lld ranks; a job has at most %d",
            by.c_str(), static_cast<long long>(ranks), kMostRanks);
}

// Reads the variables that Kubeflow's Trainer sets for torchrun, for programs started without torchrun. Kubeflow's
// ranks are nodes.
LauncherSource by_kubeflow(const Lookup &variable)
{
    LauncherSource source;
    source.name = "Kubeflow's PET_*";
    source.hosts = said_host(variable, "PET_MASTER_ADDR");
    source.port = said_port(variable, "PET_MASTER_PORT");
    const Said<std::string> run = said_text(variable, "PET_RDZV_ID");
    if (run) source.job = "Kubeflow " + run.value;
    // A range, "1:4", is torchrun's affair.
    const Said<std::string> node_count = said_text(variable, "PET_NNODES");
    const int32_t count = node_count ? parsed<int32_t>(node_count.value).value_or(0) : 0;
    if (count < 1) return source;
    // A word such as auto means as many ranks as devices. A single process of the node cannot stand for these ranks.
    const Said<std::string> each = said_text(variable, "PET_NPROC_PER_NODE");
    const int32_t per_node = each ? parsed<int32_t>(each.value).value_or(0) : 1;
    const Said<int32_t> node = first_of(said_number(variable, "PET_NODE_RANK"),
                                        said_number(variable, "JOB_COMPLETION_INDEX"));
    const Said<int32_t> local = said_number(variable, "LOCAL_RANK");
    if (per_node < 1 || (per_node > 1 && !local)) return source;
    source.size = {node_count.by, ranks_of_nodes(node_count.by, int64_t{count} * per_node)};
    if (node)
        source.rank = {node.by,
                       ranks_of_nodes(node.by, int64_t{node.value} * per_node + local.value)};
    source.local_rank = {each ? each.by : node_count.by, local.value};
    source.local_size = {each ? each.by : node_count.by, per_node};
    return source;
}

LauncherSource by_index(const Lookup &variable)
{
    LauncherSource source;
    source.name = "an indexed Job of Kubernetes";
    // With PET_* it counts nodes.
    if (!said_text(variable, "PET_NNODES"))
        source.rank = said_number(variable, "JOB_COMPLETION_INDEX");
    return source;
}

void check_local_rank(const LauncherSource &source)
{
    const Said<int32_t> &rank = source.local_rank, &size = source.local_size;
    if (source.is_outer || !rank || !size || rank.value < size.value) return;
    fail_in(
        kInitCall, YOKE_E_VALUE,
        "%s is %d, and %s is %d; the rank on a machine must be 0 or more, and below the number of ranks there",
        rank.by.c_str(), rank.value, size.by.c_str(), size.value);
}

// Marks the outer launchers. If the first source's launcher already had a source's variables when it was started,
// this source has started the launcher. The other sources run within the launcher. If the launcher's variables are
// unknown, all other sources count as outer. If torchrun or yoke run started the launcher, appends the outer run as a
// source.
void find_outer(std::vector<LauncherSource> &all, const Lookup &variable,
                const LauncherLookup &launcher)
{
    const Said<std::string> run = all[0].run;
    if (!run) return;
    const auto found = launcher(run.by, run.value);
    const Lookup before = [&](const char *name) -> const char * {
        const auto known = found->find(name);
        return known == found->end() ? nullptr : known->second.c_str();
    };
    for (LauncherSource &source : std::span(all).subspan(1)) {
        const char *by = (source.rank ? source.rank : source.size).by.c_str();
        source.is_outer = !found || said_text(before, by).value == said_text(variable, by).value;
    }
    LauncherSource outer = found ? by_rank(before) : LauncherSource();
    if (!outer.run) return;
    outer.is_outer = true;
    outer.agent_store = false;
    all.push_back(std::move(outer));
}

}  // namespace

std::vector<LauncherSource> launchers(const Lookup &variable, const LauncherLookup &launcher)
{
    std::vector<LauncherSource> all{by_rank(variable),     by_pmix(variable),
                                    by_open_mpi(variable), by_slurm(variable),
                                    by_kubeflow(variable), by_index(variable)};
    find_outer(all, variable, launcher);
    for (const LauncherSource &source : all) check_local_rank(source);
    return all;
}

}  // namespace yoke
