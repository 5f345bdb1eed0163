// Recorded environments of launchers, and what is wrong with an environment.
#include "core/rendezvous/environment.h"
#include "tests/core/expect_error.h"

#include <gtest/gtest.h>

#include <map>

namespace yoke {
namespace {

using test::expect_error;
using Variables = std::map<std::string, std::string>;

Environment environment_of(const Variables &variables, const InitArguments &arguments = {})
{
    const auto variable = [&](const char *name) -> const char * {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
    };
    return read_environment(arguments, variable, [](auto &, auto &) { return std::nullopt; });
}

InitArguments url(const std::string &text)
{
    InitArguments arguments;
    arguments.init_method = text;
    return arguments;
}

const Variables kFour = {
    {"RANK", "3"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}};

Variables with(Variables variables, const Variables &more)
{
    for (const auto &[name, value] : more) variables[name] = value;
    return variables;
}

// Variables of a worker of torchrun --nproc-per-node=2.
const Variables kTorchrun = {{"RANK", "1"},
                             {"WORLD_SIZE", "2"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"GROUP_RANK", "0"},
                             {"MASTER_ADDR", "localhost"},
                             {"MASTER_PORT", "41213"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                             {"TORCHELASTIC_RUN_ID", "7f3a"},
                             {"TORCHELASTIC_RESTART_COUNT", "2"},
                             {"TORCHELASTIC_ERROR_FILE", "/tmp/x/error.json"},
                             {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"}};

// Variables of yoke run -n 2, within a task of Slurm.
const Variables kYokeRun = {{"RANK", "1"},
                            {"WORLD_SIZE", "2"},
                            {"LOCAL_RANK", "1"},
                            {"LOCAL_WORLD_SIZE", "2"},
                            {"MASTER_ADDR", "127.0.0.1"},
                            {"MASTER_PORT", "41213"},
                            {"YOKE_RUN_ID", "0123456789abcdef"},
                            {"TORCHELASTIC_RESTART_COUNT", "2"},
                            {"SLURM_STEP_ID", "0"},
                            {"SLURM_JOB_ID", "7"},
                            {"SLURM_STEP_NODELIST", "node1"},
                            {"SLURM_PROCID", "0"},
                            {"SLURM_NTASKS", "1"}};

// mpirun -np 4 of Open MPI 4.1.4.
const Variables kMpirun = {
    {"OMPI_COMM_WORLD_RANK", "2"},
    {"OMPI_COMM_WORLD_SIZE", "4"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
    {"OMPI_COMM_WORLD_NODE_RANK", "2"},
    {"PMIX_RANK", "2"},
    {"PMIX_NAMESPACE", "3391881217"},
    {"PMIX_HOSTNAME", "head"},
    {"OMPI_MCA_orte_hnp_uri",
     "3391881216.0;tcp://10.0.0.1,192.168.1.1:45017;tcp6://[fd00::1,fd00::2]:33417"}};

// srun -n 4 in a job of two nodes.
const Variables kSrun = {{"SLURM_PROCID", "3"},
                         {"SLURM_NTASKS", "4"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_JOB_ID", "77"},
                         {"SLURM_STEP_ID", "0"},
                         {"SLURM_STEP_NODELIST", "node[01-02]"},
                         {"SLURM_NODELIST", "node[01-02]"}};

TEST(Environment, OfYokeRunIsAJobOfItsOwnWithinAnother)
{
    const Environment found = environment_of(kYokeRun);
    EXPECT_EQ(found.source, "yoke run");
    EXPECT_EQ(found.job, "yoke run 0123456789abcdef");
    EXPECT_EQ(found.epoch, 2);
    EXPECT_EQ(found.rank, 1);
    EXPECT_EQ(found.size, 2);
    EXPECT_EQ(found.port, 41213);
    EXPECT_FALSE(found.agent_store);
    // torchrun within yoke run is the inner launcher.
    EXPECT_EQ(environment_of(with(kYokeRun, kTorchrun)).job, "torchrun 7f3a");
}

TEST(Environment, FourVariablesSuffice)
{
    const Environment found = environment_of(kFour);
    EXPECT_EQ(found.rank, 3);
    EXPECT_EQ(found.size, 8);
    EXPECT_EQ(found.hosts, std::vector<std::string>{"node7"});
    EXPECT_EQ(found.port, 29500);
    EXPECT_EQ(found.local_rank, -1);
    EXPECT_EQ(found.source, "RANK and WORLD_SIZE");
    EXPECT_FALSE(found.agent_store);
    EXPECT_EQ(environment_of(with(kFour, {{"MASTER_ADDR", "[::1]"}})).hosts,
              std::vector<std::string>{"::1"});
}

TEST(Environment, UnderTorchrunThePortIsTheAgentsAndTheRestartsAreTheEpoch)
{
    const Environment found = environment_of(kTorchrun);
    EXPECT_EQ(found.source, "torchrun");
    EXPECT_EQ(found.rank, 1);
    EXPECT_EQ(found.local_rank, 1);
    EXPECT_EQ(found.local_size, 2);
    EXPECT_TRUE(found.agent_store);
    EXPECT_EQ(found.job, "torchrun 7f3a");
    EXPECT_EQ(found.epoch, 2);
    EXPECT_FALSE(
        environment_of(with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})).agent_store);
    // An address of the caller's own is not the agent's.
    EXPECT_FALSE(environment_of(kTorchrun, url("tcp://localhost:5000")).agent_store);
}

TEST(Environment, UnderMpirunTheHeadNodeIsInItsUri)
{
    const Environment found = environment_of(kMpirun);
    EXPECT_EQ(found.source, "PMIx");
    EXPECT_EQ(found.rank, 2);
    EXPECT_EQ(found.size, 4);
    EXPECT_EQ(found.local_rank, 2);
    EXPECT_EQ(found.local_size, 4);
    EXPECT_EQ(found.hosts,
              (std::vector<std::string>{"10.0.0.1", "192.168.1.1", "fd00::1", "fd00::2"}));
    EXPECT_EQ(found.port, 0);
    EXPECT_EQ(found.job, "PMIx 3391881217");
}

TEST(Environment, UnderSrunTheFirstNodeOfTheStepHasRankZero)
{
    const Environment found = environment_of(kSrun);
    EXPECT_EQ(found.source, "Slurm step 77.0");
    EXPECT_EQ(found.rank, 3);
    EXPECT_EQ(found.size, 4);
    EXPECT_EQ(found.local_rank, 1);
    EXPECT_EQ(found.hosts, std::vector<std::string>{"node01"});
    EXPECT_EQ(found.job, "Slurm step 77.0");
}

TEST(Environment, PmixTakesTheSizeFromWhoeverHasIt)
{
    const Environment found =
        environment_of(with(kSrun, {{"PMIX_RANK", "3"}, {"PMIX_NAMESPACE", "slurm.77.0"}}));
    EXPECT_EQ(found.source, "PMIx");
    EXPECT_EQ(found.size, 4);
    EXPECT_EQ(found.hosts, std::vector<std::string>{"node01"});
    expect_error(YOKE_E_VALUE, {"the rank 3 (PMIX_RANK)", "missing: the size (WORLD_SIZE)"}, [] {
        environment_of({{"PMIX_RANK", "3"}, {"PMIX_NAMESPACE", "x"}});
    });
}

TEST(Environment, MpirunWithinASlurmJobIsNotComparedWithItsDaemons)
{
    const Environment found =
        environment_of(with(kMpirun, with(kSrun, {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}})));
    EXPECT_EQ(found.rank, 2);
    EXPECT_EQ(found.size, 4);
}

TEST(Environment, TorchrunWithinASlurmStepIsNotComparedWithIt)
{
    const Environment found = environment_of(with(kTorchrun, kSrun));
    EXPECT_EQ(found.rank, 1);
    EXPECT_EQ(found.size, 2);
    EXPECT_EQ(found.hosts, std::vector<std::string>{"localhost"});
}

TEST(Environment, TheScriptOfABatchJobIsNoRank)
{
    expect_error(YOKE_E_VALUE, {"found nothing", "RANK"}, [] {
        environment_of({{"SLURM_PROCID", "0"},
                        {"SLURM_NTASKS", "4"},
                        {"SLURM_JOB_ID", "77"},
                        {"SLURM_NODELIST", "node[01-02]"}});
    });
}

const Variables kKubeflow = {{"PET_NNODES", "4"},          {"PET_NPROC_PER_NODE", "1"},
                             {"PET_NODE_RANK", "2"},       {"PET_MASTER_ADDR", "job-node-0-0.job"},
                             {"PET_MASTER_PORT", "29400"}, {"JOB_COMPLETION_INDEX", "2"}};

TEST(Environment, ASizeOrRankThatCannotBeIsNamed)
{
    for (const int32_t size : {0, -3, 65537, INT32_MAX}) {
        InitArguments arguments = url("tcp://127.0.0.1:29500");
        arguments.rank = 0;
        arguments.size = size;
        const std::string named = format("the size is %d (the argument world_size)", size);
        expect_error(YOKE_E_VALUE, {named.c_str(), "1 to 65536 ranks"},
                     [&] { environment_of({}, arguments); });
    }
    InitArguments arguments = url("tcp://127.0.0.1:29500");
    arguments.rank = -1;
    arguments.size = 4;
    expect_error(YOKE_E_VALUE, {"the rank is -1 (the argument rank)", "0 to 3"},
                 [&] { environment_of({}, arguments); });
    expect_error(YOKE_E_VALUE, {"the size is 0 (WORLD_SIZE)"}, [] {
        environment_of(with(kFour, {{"WORLD_SIZE", "0"}}));
    });
    arguments.init_method = "env://";  // even if other values are missing too
    expect_error(YOKE_E_VALUE, {"the rank is -1 (the argument rank)"},
                 [&] { environment_of({}, arguments); });
}

TEST(Environment, ARankThatIsNotBelowTheSizeIsNamedWithWhoSaidBoth)
{
    const Environment found = environment_of(with(kFour, {{"RANK", "9"}}));
    EXPECT_EQ(found.rank, 9);  // the other ranks get the error
    expect_error(YOKE_E_VALUE, {"the rank is 9 (RANK), and the size 8 (WORLD_SIZE)", "0 to 7"},
                 [&] { check_rank(found); });
    const Environment mixed = environment_of(
        with(kMpirun, {{"WORLD_SIZE", "4"}, {"PMIX_RANK", "4"}, {"OMPI_COMM_WORLD_RANK", "4"}}));
    expect_error(YOKE_E_VALUE, {"the rank is 4 (PMIX_RANK), and the size 4 (WORLD_SIZE)"},
                 [&] { check_rank(mixed); });
    check_rank(environment_of(kFour));
}

TEST(Environment, NodesTimesRanksThatAreTooManyAreNamed)
{
    Variables many = {{"PET_NNODES", "65536"},    {"PET_NPROC_PER_NODE", "65536"},
                      {"PET_NODE_RANK", "0"},     {"LOCAL_RANK", "0"},
                      {"PET_MASTER_ADDR", "job"}, {"PET_MASTER_PORT", "29400"}};
    expect_error(YOKE_E_VALUE, {"PET_NNODES", "4294967296 ranks", "65536"},
                 [&] { environment_of(many); });
    many["PET_NNODES"] = "2";
    many["PET_NODE_RANK"] = "2147483647";
    expect_error(YOKE_E_VALUE, {"PET_NODE_RANK", "ranks"}, [&] { environment_of(many); });
}

TEST(Environment, OfKubeflowsPetVariablesEachNodeIsARank)
{
    const Environment found = environment_of(kKubeflow);
    EXPECT_EQ(found.source, "Kubeflow's PET_*");
    EXPECT_EQ(found.rank, 2);
    EXPECT_EQ(found.size, 4);
    EXPECT_EQ(found.local_rank, 0);
    EXPECT_EQ(found.local_size, 1);
    EXPECT_EQ(found.hosts, std::vector<std::string>{"job-node-0-0.job"});
    EXPECT_EQ(found.port, 29400);
    const Environment second =
        environment_of(with(kKubeflow, {{"PET_NPROC_PER_NODE", "8"}, {"LOCAL_RANK", "5"}}));
    EXPECT_EQ(second.rank, 21);
    EXPECT_EQ(second.size, 32);
    // A node has eight processes, but no variable says which process this is; torchrun would set the variable.
    expect_error(YOKE_E_VALUE, {"the rank (RANK)"}, [] {
        environment_of(with(kKubeflow, {{"PET_NPROC_PER_NODE", "8"}}));
    });
    EXPECT_EQ(environment_of(with(kTorchrun, with(kKubeflow, {{"PET_NNODES", "1:4"}}))).size, 2);
}

TEST(Environment, AnIndexedJobGivesTheRank)
{
    const Environment found = environment_of({{"JOB_COMPLETION_INDEX", "1"},
                                              {"WORLD_SIZE", "2"},
                                              {"MASTER_ADDR", "job-0.svc"},
                                              {"MASTER_PORT", "29500"}});
    EXPECT_EQ(found.source, "an indexed Job of Kubernetes");
    EXPECT_EQ(found.rank, 1);
    expect_error(YOKE_E_VALUE,
                 {"the rank 1 (JOB_COMPLETION_INDEX)", "the size (WORLD_SIZE)", "MASTER_ADDR",
                  "MASTER_PORT"},
                 [] {
                     environment_of({{"JOB_COMPLETION_INDEX", "1"}});
                 });
}

TEST(Environment, AUrlAndArgumentsComeFirst)
{
    InitArguments arguments = url("tcp://[fd00::7]:5000");
    arguments.rank = 0;
    arguments.size = 2;
    const Environment found = environment_of(kFour, arguments);
    EXPECT_EQ(found.source, "explicit arguments");
    EXPECT_EQ(found.rank, 0);
    EXPECT_EQ(found.size, 2);
    EXPECT_EQ(found.hosts, std::vector<std::string>{"fd00::7"});
    EXPECT_EQ(found.port, 5000);
    EXPECT_EQ(environment_of({}, url("tcp://a:1?rank=1&world_size=2")).rank, 1);
    const Environment file = environment_of({}, url("file:///tmp/x?rank=1&world_size=2"));
    EXPECT_EQ(file.file, "/tmp/x");
    EXPECT_TRUE(file.hosts.empty());
}

TEST(Environment, WhatContradictsItselfIsNamedWithBothValues)
{
    expect_error(YOKE_E_VALUE, {"RANK says", "3", "OMPI_COMM_WORLD_RANK", "2"}, [] {
        environment_of(with(kFour, {{"OMPI_COMM_WORLD_RANK", "2"}}));
    });
    expect_error(YOKE_E_VALUE, {"WORLD_SIZE says", "8", "SLURM_NTASKS", "4"},
                 [] { environment_of(with(kFour, kSrun)); });
    InitArguments rank;
    rank.rank = 1;
    expect_error(YOKE_E_VALUE, {"the argument rank", "1", "RANK", "3"},
                 [&] { environment_of(kFour, rank); });
}

TEST(Environment, AUrlThatContradictsItselfOrTheArgumentsIsRefused)
{
    InitArguments arguments = url("tcp://127.0.0.1:29500?rank=1&world_size=4");
    arguments.rank = 1;
    EXPECT_EQ(environment_of({}, arguments).rank, 1);
    arguments.rank = 2;
    expect_error(YOKE_E_VALUE, {"init_method's rank says that the rank is 1", "rank says 2"},
                 [&] { environment_of({}, arguments); });
    arguments = url("tcp://127.0.0.1:29500?rank=1&world_size=4");
    arguments.size = 8;
    expect_error(YOKE_E_VALUE, {"init_method's world_size says that the size is 4", "says 8"},
                 [&] { environment_of({}, arguments); });
    expect_error(YOKE_E_VALUE, {"the rank is 1", "says 3"}, [] {
        environment_of({}, url("tcp://127.0.0.1:29500?rank=1&rank=3&world_size=4"));
    });
}

TEST(Environment, WhatIsMissingIsListedBesideWhatWasFound)
{
    expect_error(YOKE_E_VALUE,
                 {"found the rank 3 (RANK), the size 8 (WORLD_SIZE)",
                  "missing: rank 0's host (MASTER_ADDR), rank 0's port (MASTER_PORT)", "torchrun"},
                 [] {
                     environment_of({{"RANK", "3"}, {"WORLD_SIZE", "8"}});
                 });
    expect_error(YOKE_E_VALUE, {"found nothing", "the rank (RANK), the size (WORLD_SIZE)"}, [] {
        environment_of({{"RANK", ""}});
    });
    EXPECT_EQ(environment_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).size, 1);
}

TEST(Environment, WhatIsNoNumberIsNamed)
{
    expect_error(YOKE_E_VALUE, {"RANK is '-1'", "0 or more"}, [] {
        environment_of(with(kFour, {{"RANK", "-1"}}));
    });
    expect_error(YOKE_E_VALUE, {"WORLD_SIZE is '4x'"}, [] {
        environment_of(with(kFour, {{"WORLD_SIZE", "4x"}}));
    });
    expect_error(YOKE_E_VALUE, {"MASTER_PORT is '70000'", "65535"}, [] {
        environment_of(with(kFour, {{"MASTER_PORT", "70000"}}));
    });
    for (const char *bad : {"tcp://", "tcp://a", "tcp://a:0", "tcp://fd00::1:5", "http://a:1",
                            "file://x", "tcp://a:1?rank=x"})
        expect_error(YOKE_E_VALUE, {bad, "tcp://HOST:PORT"},
                     [&] { environment_of(kFour, url(bad)); });
}

TEST(SlurmNodes, TheFirstHostOfAListIsFound)
{
    EXPECT_EQ(first_slurm_host("node7"), "node7");
    EXPECT_EQ(first_slurm_host("node7,node9"), "node7");
    EXPECT_EQ(first_slurm_host("node[01-03,7],gpu[1-2]-eth"), "node01");
    EXPECT_EQ(first_slurm_host("gpu[1-2]-eth,x"), "gpu1-eth");
    EXPECT_EQ(first_slurm_host("rack[2,4]n[007-010].cluster"), "rack2n007.cluster");
    for (const char *bad :
         {"", ",a", "node[", "node[]", "node[a-b]", "node]1[", "a b", "[", "node[1"})
        expect_error(YOKE_E_VALUE, {bad, "MASTER_ADDR"}, [&] { first_slurm_host(bad); });
}

TEST(OpenMpiUri, ItsAddressesAreFound)
{
    using Hosts = std::vector<std::string>;
    EXPECT_EQ(hosts_of_hnp("1.0;tcp://10.0.0.1:45017"), Hosts{"10.0.0.1"});
    EXPECT_EQ(hosts_of_hnp("1.0;tcp6://[fe80::1]:33"), Hosts{"fe80::1"});
    EXPECT_EQ(hosts_of_hnp("1.0;usock;tcp://a,b:1;tcp6://[::1,fd00::2]:2"),
              (Hosts{"a", "b", "::1", "fd00::2"}));
    for (const char *none : {"", "1.0", "1.0;tcp://", "1.0;tcp", ";;;", "tcp://:"})
        EXPECT_EQ(hosts_of_hnp(none), Hosts{}) << none;
}

}  // namespace
}  // namespace yoke
