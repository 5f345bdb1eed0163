// Launchers that run within other launchers: the launcher that counts, and contradictions.
#include "core/base/error.h"
#include "core/rendezvous/environment.h"
#include "tests/core/expect_error.h"

#include <gtest/gtest.h>

namespace yoke {
namespace {

using test::expect_error;
using Variables = std::map<std::string, std::string>;

Variables operator+(Variables variables, const Variables &more)
{
    for (const auto &[name, value] : more) variables[name] = value;
    return variables;
}

// Returns the environment of a process; `launcher` has the variables with which the run's own launcher was started.
Environment environment_of(const Variables &variables, const std::optional<Variables> &launcher,
                           const InitArguments &arguments = {})
{
    const auto variable = [&](const char *name) -> const char * {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
    };
    return read_environment(arguments, variable, [&](auto &name, auto &value) {
        EXPECT_EQ(variables.at(name), value);
        return launcher;
    });
}

Variables ranks(const char *run, const char *id, int rank, int size, int local_size)
{
    return {{run, id},
            {"RANK", std::to_string(rank)},
            {"WORLD_SIZE", std::to_string(size)},
            {"LOCAL_RANK", std::to_string(rank % local_size)},
            {"LOCAL_WORLD_SIZE", std::to_string(local_size)},
            {"MASTER_ADDR", "127.0.0.1"},
            {"MASTER_PORT", "41213"}};
}

Variables mpirun(int rank, int size)
{
    return {{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
            {"OMPI_COMM_WORLD_SIZE", std::to_string(size)},
            {"PMIX_RANK", std::to_string(rank)},
            {"PMIX_NAMESPACE", "7"}};
}

Variables srun(int rank, int size)
{
    return {{"SLURM_PROCID", std::to_string(rank)},
            {"SLURM_STEP_NUM_TASKS", std::to_string(size)},
            {"SLURM_JOB_ID", "77"},
            {"SLURM_STEP_ID", "0"},
            {"SLURM_STEP_NODELIST", "node[01-02]"}};
}

constexpr const char *kYoke = "YOKE_RUN_ID", *kTorch = "TORCHELASTIC_RUN_ID";

TEST(NestedLaunchers, OneThatYokeRunOrTorchrunHasStartedContradictsThem)
{
    for (const char *run : {kYoke, kTorch}) {
        const Variables one = ranks(run, "7f", 0, 1, 1);
        const Variables shell = {{"PATH", "/bin"}};
        expect_error(YOKE_E_VALUE,
                     {"RANK says that the rank is 0, but PMIX_RANK says 1", "PMIx runs within ",
                      run == kYoke ? "yoke run" : "torchrun"},
                     [&] { environment_of(one + mpirun(1, 2), shell); });
        expect_error(YOKE_E_VALUE,
                     {"WORLD_SIZE says that the size is 1, but OMPI_COMM_WORLD_SIZE says 2",
                      "Open MPI runs within "},
                     [&] { environment_of(one + mpirun(0, 2), shell); });
        expect_error(YOKE_E_VALUE, {"RANK says", "SLURM_PROCID says 1"},
                     [&] { environment_of(one + srun(1, 2), shell); });
        EXPECT_EQ(environment_of(one + mpirun(0, 1), shell).size, 1);
    }
}

// MPI_Init leaves such variables in a script without mpirun; the import of mpi4py calls MPI_Init.
TEST(NestedLaunchers, MpiThatAProcessHasBegunAloneIsNone)
{
    const Variables alone = {
        {"OMPI_MCA_ess", "singleton"}, {"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "1503526913"}};
    for (const int rank : {0, 1}) {
        const Environment found =
            environment_of(ranks(kYoke, "7f", rank, 2, 2) + alone, Variables{{"PATH", "/bin"}});
        EXPECT_EQ(found.source, "yoke run");
        EXPECT_EQ(found.rank, rank);
        EXPECT_EQ(found.size, 2);
    }
}

// Each process of the run is refused, as all ranks of the inner launcher would be.
TEST(NestedLaunchers, OneWithinARankIsRefusedThoughItCountsAlike)
{
    const Variables shell = {{"PATH", "/bin"}};
    for (const char *run : {kYoke, kTorch})
        for (const int rank : {0, 1}) {
            const Variables one = ranks(run, "7f", rank, 2, 2);
            const std::string ours = format("%s started rank %d of 2 (RANK is %d), and ",
                                            run == kYoke ? "yoke run" : "torchrun", rank, rank);
            const std::string theirs =
                format("inside it PMIx also started rank %d (PMIX_RANK is %d)", rank, rank);
            expect_error(YOKE_E_VALUE, {ours.c_str(), theirs.c_str(), "with one launcher"},
                         [&] { environment_of(one + mpirun(rank, 2), shell); });
            const std::string step = format("(SLURM_PROCID is %d)", rank);
            expect_error(YOKE_E_VALUE, {ours.c_str(), "Slurm step 77.0", step.c_str()},
                         [&] { environment_of(one + srun(rank, 2), shell); });
            // Here the run itself is in a step of Slurm.
            expect_error(YOKE_E_VALUE, {ours.c_str(), theirs.c_str()},
                         [&] { environment_of(srun(0, 2) + one + mpirun(rank, 2), srun(0, 2)); });
        }
}

// A wrapper passes the values of its launcher to a program, in the variables of torchrun.
TEST(NestedLaunchers, OneWhoseRanksHaveAskedForTheRunIsNone)
{
    EXPECT_EQ(environment_of(mpirun(1, 2) + ranks(kTorch, "7f", 1, 2, 2), mpirun(1, 2)).rank, 1);
    EXPECT_EQ(environment_of(srun(1, 2) + ranks(kTorch, "7f", 1, 2, 2), srun(1, 2)).rank, 1);
}

TEST(NestedLaunchers, WhoGivesRankAndSizeHasDecided)
{
    const Variables nested = ranks(kYoke, "7f", 1, 2, 2) + mpirun(1, 2);
    InitArguments given;
    given.rank = 3;
    given.size = 4;
    EXPECT_EQ(environment_of(nested, Variables{{"PATH", "/bin"}}, given).rank, 3);
}

TEST(NestedLaunchers, OneThatHasStartedYokeRunOrTorchrunIsNotCompared)
{
    for (const char *run : {kYoke, kTorch})
        for (const Variables &outer : {mpirun(1, 2), srun(1, 2), mpirun(1, 2) + srun(0, 1)}) {
            const Environment found = environment_of(outer + ranks(run, "7f", 6, 8, 4), outer);
            EXPECT_EQ(found.rank, 6);
            EXPECT_EQ(found.size, 8);
            EXPECT_EQ(found.doubt, "");  // each task runs a node of the job
        }
}

TEST(NestedLaunchers, MpirunBetweenAStepAndItsRanksIsComparedAlone)
{
    // srun has started yoke run, and yoke run has started mpirun.
    expect_error(YOKE_E_VALUE, {"RANK says", "PMIX_RANK says 1"}, [] {
        environment_of(srun(1, 2) + ranks(kYoke, "7f", 0, 1, 1) + mpirun(1, 2), srun(1, 2));
    });
}

TEST(NestedLaunchers, AnotherStepWithinOfTheSameLauncherIsAnother)
{
    // A step runs a yoke run, which has started a further step.
    expect_error(YOKE_E_VALUE, {"RANK says", "SLURM_PROCID says 1"},
                 [] { environment_of(srun(1, 2) + ranks(kYoke, "7f", 0, 1, 1), srun(0, 1)); });
}

TEST(NestedLaunchers, WhereTheSystemDoesNotTellTheRunCounts)
{
    EXPECT_EQ(environment_of(mpirun(1, 2) + ranks(kYoke, "7f", 0, 1, 1), std::nullopt).rank, 0);
}

TEST(NestedLaunchers, AJobInEachOfSeveralProcessesIsDoubted)
{
    const Variables one = ranks(kYoke, "7f", 0, 1, 1);
    const std::string by_mpi = environment_of(mpirun(1, 2) + one, mpirun(1, 2)).doubt;
    EXPECT_NE(
        by_mpi.find("job of 1 ranks by yoke run runs inside a process of Open MPI, which started "
                    "2 (OMPI_COMM_WORLD_SIZE)"),
        std::string::npos)
        << by_mpi;
    EXPECT_EQ(environment_of(mpirun(0, 1) + one, mpirun(0, 1)).doubt, "");
    // The inner launcher's variables hide the outer launcher's, but the inner launcher was started with them.
    const Variables outer = ranks(kTorch, "elastic", 1, 2, 2);
    const std::string by_torch = environment_of(one, outer).doubt;
    EXPECT_NE(by_torch.find("inside a process of torchrun, which started 2 (WORLD_SIZE)"),
              std::string::npos)
        << by_torch;
    EXPECT_EQ(environment_of(ranks(kYoke, "7f", 1, 4, 2), outer).doubt, "");
}

}  // namespace
}  // namespace yoke
