// Number of a process among its machine's ranks, by the variables of launchers.
#include "core/comm/local_rank.h"

#include "core/comm/init.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

namespace yoke {
namespace {

using test::expect_error;
using test::in_fresh_process;
using Setting = std::map<std::string, std::string>;

void set_all(const Setting &variables)
{
    for (const auto &[name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
}

std::optional<int32_t> rank_of(const Setting &variables)
{
    set_all(variables);
    const auto found = detail::local_rank();
    for (const auto &[name, value] : variables) unsetenv(name.c_str());
    return found;
}

TEST(LocalRank, EachLauncherTellsIt)
{
    in_fresh_process([] {
        EXPECT_EQ(rank_of({}), std::nullopt);
        EXPECT_EQ(rank_of({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}}), 1);
        EXPECT_EQ(rank_of({{"TORCHELASTIC_RUN_ID", "none"},
                           {"RANK", "3"},
                           {"WORLD_SIZE", "4"},
                           {"LOCAL_RANK", "3"},
                           {"LOCAL_WORLD_SIZE", "4"}}),
                  3);
        EXPECT_EQ(rank_of({{"OMPI_COMM_WORLD_RANK", "6"},
                           {"OMPI_COMM_WORLD_SIZE", "8"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}),
                  2);
        EXPECT_EQ(rank_of({{"SLURM_STEP_ID", "0"},
                           {"SLURM_STEP_NUM_TASKS", "8"},
                           {"SLURM_PROCID", "7"},
                           {"SLURM_LOCALID", "3"}}),
                  3);
    });
}

TEST(LocalRank, OnlyAmongSeveralRanksOfAMachine)
{
    in_fresh_process([] {
        EXPECT_EQ(rank_of({{"LOCAL_RANK", "1"}}), std::nullopt);  // no variable gives the rank
        EXPECT_EQ(rank_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}}), std::nullopt);
        EXPECT_EQ(rank_of({{"RANK", "1"},
                           {"WORLD_SIZE", "2"},
                           {"LOCAL_RANK", "0"},
                           {"LOCAL_WORLD_SIZE", "1"}}),
                  std::nullopt);
        EXPECT_EQ(rank_of({{"RANK", "1"}, {"WORLD_SIZE", "2"}}), std::nullopt);
        const auto slurm_rank = [](const char *tasks, const char *node, const char *local) {
            return rank_of({{"SLURM_STEP_ID", "0"},
                            {"SLURM_STEP_NUM_TASKS", "8"},
                            {"SLURM_PROCID", "3"},
                            {"SLURM_STEP_TASKS_PER_NODE", tasks},
                            {"SLURM_NODEID", node},
                            {"SLURM_LOCALID", local}});
        };
        EXPECT_EQ(slurm_rank("1(x8)", "3", "0"), std::nullopt);
        EXPECT_EQ(slurm_rank("3(x2),1(x2)", "2", "0"), std::nullopt);
        EXPECT_EQ(slurm_rank("3(x2),1(x2)", "1", "0"), 0);
        EXPECT_EQ(slurm_rank("4,4", "1", "2"), 2);
        for (const char *other : {"1(x8)", "4", "x", "4(y", "4(x"})  // the list of another step
            EXPECT_EQ(slurm_rank(other, "3", "2"), 2) << other;
        // A batch job's own script is no rank.
        EXPECT_EQ(rank_of({{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}}),
                  std::nullopt);
    });
}

TEST(LocalRank, WhatNoRankCanHaveIsRefused)
{
    in_fresh_process([] {
        for (const char *wrong : {"x", "-1", "2.5", "99999999999"})
            expect_error(YOKE_E_VALUE, {"LOCAL_RANK", wrong}, [&] {
                rank_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", wrong}});
            });
        expect_error(YOKE_E_VALUE, {"LOCAL_RANK is 2", "LOCAL_WORLD_SIZE is 2"}, [] {
            rank_of({{"RANK", "2"},
                     {"WORLD_SIZE", "4"},
                     {"LOCAL_RANK", "2"},
                     {"LOCAL_WORLD_SIZE", "2"}});
        });
    });
}

TEST(LocalRank, TheGroupKnowsItWhereNoVariableSays)
{
    in_fresh_process([] {
        EXPECT_EQ(local_rank_in_default_group(), std::nullopt);
        EXPECT_EQ(detail::local_rank(), std::nullopt);
    });
}

const Setting kJob = {
    {"RANK", "0"},         {"WORLD_SIZE", "2"},          {"LOCAL_RANK", "0"},
    {"YOKE_RUN_ID", "7f"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};

// Returns whether a process with these variables beside the job's is a rank beside rank 0 of the job.
bool is_beside(const Setting &more)
{
    int is_there[2], ends[2];
    EXPECT_EQ(pipe2(is_there, O_CLOEXEC), 0);
    EXPECT_EQ(pipe(ends), 0);
    const pid_t other = fork();
    if (other == 0) {
        dup2(ends[0], 0);
        close(ends[1]);
        set_all(more);
        execlp("cat", "cat", nullptr);
        _exit(1);
    }
    close(is_there[1]);
    char byte = 0;
    (void)!read(is_there[0], &byte, 1);  // exec closes the pipe
    const bool found = detail::is_rank_beside(other);
    close(ends[0]), close(ends[1]), close(is_there[0]);
    kill(other, SIGKILL);
    waitpid(other, nullptr, 0);
    return found;
}

TEST(LocalRank, RanksOfOneJobKnowEachOther)
{
    in_fresh_process([] {
        set_all(kJob);
        EXPECT_TRUE(detail::is_rank_beside(getpid()));
        EXPECT_FALSE(detail::is_rank_beside(getppid()));
        EXPECT_TRUE(is_beside({{"RANK", "1"}, {"LOCAL_RANK", "1"}}));
        EXPECT_TRUE(is_beside({}));  // a child of this rank
        for (const Setting &other :
             {Setting{{"RANK", "1"}, {"MASTER_PORT", "29501"}},
              Setting{{"RANK", "1"}, {"YOKE_RUN_ID", "80"}},
              Setting{{"RANK", "1"}, {"WORLD_SIZE", "4"}}, Setting{{"RANK", "one"}}})
            EXPECT_FALSE(is_beside(other));
    });
}

TEST(LocalRank, AVariableIsTheRanksOwnWhereTheLauncherHadAnother)
{
    in_fresh_process([] {
        EXPECT_FALSE(detail::is_variable_of_rank("YOKE_TEST_CARDS"));
        set_all(kJob);
        EXPECT_FALSE(detail::is_variable_of_rank("YOKE_TEST_CARDS"));
        setenv("YOKE_TEST_CARDS", "3", 1);
        EXPECT_TRUE(detail::is_variable_of_rank("YOKE_TEST_CARDS"));  // unknown to the parent
        const char *path = getenv("PATH");
        ASSERT_NE(path, nullptr);
        EXPECT_FALSE(detail::is_variable_of_rank("PATH"));
    });
}

}  // namespace
}  // namespace yoke
