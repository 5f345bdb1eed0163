// environment.h: which rank this process is, of how many, and where rank 0 is, as whoever started it has said.
//
// The first source that names a rank counts, in this order: explicit arguments and a tcp:// or file:// URL; RANK,
// WORLD_SIZE, MASTER_ADDR, MASTER_PORT (yoke run, torchrun, Kubeflow, by hand); PMIx; Open MPI; Slurm; Kubeflow's
// PET_*; an indexed Job of Kubernetes. What it leaves open is taken from the ones behind it. Two that contradict each
// other are an error which names both variables and both values, unless the launcher that counts is known to have been
// started by the other one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// A variable's text, or null. So tests bring an environment of their own.
using Lookup = std::function<const char *(const char *name)>;
const char *process_variable(const char *name) noexcept;

// The variables of the launcher that has set this one to this value, as it was started itself; nothing where the system
// does not tell.
using LauncherLookup = std::function<std::optional<std::map<std::string, std::string>>(
    const std::string &name, const std::string &value)>;
// Of the process among those that this one comes from.
std::optional<std::map<std::string, std::string>> process_launcher(const std::string &name,
                                                                   const std::string &value);

// What the call of init was given.
struct InitArguments {
    std::string init_method = "env://";  // or tcp://HOST:PORT, file:///PATH
    std::optional<int32_t> rank, size;
    bool operator==(const InitArguments &) const = default;
    bool has_store = false;  // of the host's own, so that nobody need know where rank 0 is
};

inline constexpr int32_t kMostRanks = 65536;  // of a job

struct Environment {
    std::string
        source;  // who named the rank, for people: "torchrun", "Slurm step 7.0", "explicit arguments"
    int32_t rank = 0, size = 1;
    std::string rank_by, size_by;              // who said them: "RANK", "the argument rank"
    int32_t local_rank = -1, local_size = -1;  // -1: nobody said it
    std::vector<std::string> hosts;            // of rank 0: names or addresses of its one host
    uint16_t port = 0;                         // 0: one that is made from `job`
    std::string file;                          // of file://, else ""
    std::string job;    // what tells this job from others, as far as anybody said: "torchrun 7f3a"
    int64_t epoch = 0;  // how often the job was started again
    bool agent_store = false;  // the launcher itself listens on `port`: rank 0 takes another one
    std::string doubt;         // for people: one job may have been meant, and there are several
};

// Raises YOKE_E_VALUE: for values that are no number or none that there can be, or contradict each other, and where
// something is missing, with what was found, what is missing and what to set. It does not judge whether the rank is
// below the size: others are told that, too.
Environment read_environment(const InitArguments &arguments, const Lookup &variable,
                             const LauncherLookup &launcher);
// For people: "rank 0 of 2 at node7:29500".
std::string describe(const Environment &environment);
// Raises YOKE_E_VALUE where the rank is not below the size, with both and who said them.
void check_rank(const Environment &environment);

// The first host of Slurm's "node[01-03,7],gpu[1-2]-eth": "node01". Raises YOKE_E_VALUE for what is no such list.
std::string first_slurm_host(std::string_view list);
// The addresses in Open MPI's "JOB;tcp://10.0.0.1,192.168.1.1:45017;tcp6://[fe80::1]:33", in their order.
std::vector<std::string> hosts_of_hnp(std::string_view uri);

}  // namespace yoke
