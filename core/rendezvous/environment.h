// environment.h: this process's rank, the number of ranks and the place of rank 0, as the launcher gave them.
//
// The first source that names a rank counts, in this order: explicit arguments and a tcp:// or file:// URL; RANK,
// WORLD_SIZE, MASTER_ADDR, MASTER_PORT (yoke run, torchrun, Kubeflow, by hand); PMIx; Open MPI; Slurm; Kubeflow's
// PET_*; an indexed Job of Kubernetes. Later sources fill in values that the first source leaves open. If two sources
// contradict each other, an error names both variables and both values. There is no error if the first source's
// launcher is known to have been started by the other launcher.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// Function that returns a variable's text, or null. Tests pass an environment of their own.
using Lookup = std::function<const char *(const char *name)>;
const char *process_variable(const char *name) noexcept;

// Function that finds the launcher that set this variable to this value. Returns the launcher's own start variables;
// nullopt if the system does not show them.
using LauncherLookup = std::function<std::optional<std::map<std::string, std::string>>(
    const std::string &name, const std::string &value)>;
// Returns the start variables of the nearest ancestor of this process that was started without this value. Returns an
// empty map if a launcher outside this Slurm step had set the value. Returns nullopt if the system does not show the
// ancestor's variables.
std::optional<std::map<std::string, std::string>> process_launcher(const std::string &name,
                                                                   const std::string &value);

// Arguments of the call of init.
struct InitArguments {
    std::string init_method = "env://";  // also tcp://HOST:PORT, file:///PATH
    std::optional<int32_t> rank, size;
    bool operator==(const InitArguments &) const = default;
    bool has_store = false;  // a store of the host program: rank 0's place may be unknown
};

inline constexpr int32_t kMostRanks = 65536;  // ranks of a job

struct Environment {
    std::string
        source;  // source of the rank, for people: "torchrun", "Slurm step 7.0", "explicit arguments"
    int32_t rank = 0, size = 1;
    std::string rank_by, size_by;  // sources of rank and size: "RANK", "the argument rank"
    int32_t local_rank = -1, local_size = -1;  // -1: not given
    std::vector<std::string> hosts;            // names or addresses of rank 0's machine
    uint16_t port = 0;                         // 0: made from `job`
    std::string file;                          // path of file://, else ""
    std::string job;           // job's unique name, as far as known: "torchrun 7f3a"
    int64_t epoch = 0;         // how often the job was started again
    bool agent_store = false;  // the launcher listens on `port`: rank 0 takes another port
    std::string doubt;  // for people: several jobs exist, and the user may have meant a single job
};

// Returns this process's rank, the size and rank 0's place, from the arguments and the variables. Raises YOKE_E_VALUE
// if a value is no number, out of range, contradictory or missing. The error says which values were found, which are
// missing and what to set. The function does not check whether the rank is below the size, because the other ranks
// must learn of this error too.
Environment read_environment(const InitArguments &arguments, const Lookup &variable,
                             const LauncherLookup &launcher);
// Returns a text for people: "rank 0 of 2 at node7:29500". An unknown host or port is left out.
std::string describe(const Environment &environment);
// Raises YOKE_E_VALUE if the rank is not below the size. The error gives both values and their sources.
void check_rank(const Environment &environment);

// Returns the first host of Slurm's "node[01-03,7],gpu[1-2]-eth": "node01". Raises YOKE_E_VALUE for other texts.
std::string first_slurm_host(std::string_view list);
// Returns the addresses in Open MPI's "JOB;tcp://10.0.0.1,192.168.1.1:45017;tcp6://[fe80::1]:33", in the same order.
std::vector<std::string> hosts_of_hnp(std::string_view uri);

}  // namespace yoke
