// Variables really set by launchers, in rank 3 of 4 on a single machine, as `./dev soak launchers` records them. Host
// names are made up.
#include "core/base/text.h"
#include "core/rendezvous/environment.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

namespace yoke {
namespace {

Environment recorded(const std::string &name)
{
    std::map<std::string, std::string> variables;
    std::istringstream lines(file_text("tests/core/rendezvous/environments/" + name + ".txt"));
    for (std::string line; std::getline(lines, line);) {
        const size_t end = line.find('=');
        variables[line.substr(0, end)] = line.substr(end + 1);
    }
    EXPECT_GT(variables.size(), 5u)
        << name << " cannot be read: tests run in the folder of the sources";
    const auto variable = [&](const char *wanted) -> const char * {
        const auto found = variables.find(wanted);
        return found == variables.end() ? nullptr : found->second.c_str();
    };
    return read_environment({}, variable, [](auto &, auto &) { return std::nullopt; });
}

// Checks the environment. Rank and size are equal under all launchers; hosts and port differ.
void expect(const std::string &name, const char *source, const std::string &job,
            const std::string &host, uint16_t port, bool agent_store)
{
    const Environment found = recorded(name);
    EXPECT_EQ(found.rank, 3) << name;
    EXPECT_EQ(found.size, 4) << name;
    EXPECT_EQ(found.local_rank, 3) << name;
    EXPECT_EQ(found.source, source) << name;
    EXPECT_EQ(found.job, job) << name;
    ASSERT_FALSE(found.hosts.empty()) << name;
    EXPECT_EQ(found.hosts[0], host) << name;
    EXPECT_EQ(found.port, port) << name;
    EXPECT_EQ(found.agent_store, agent_store) << name;
    EXPECT_EQ(found.epoch, 0) << name;
}

TEST(RecordedEnvironments, OfEachLauncherAreUnderstood)
{
    expect("yoke-run", "yoke run", "yoke run c58e097d3195d318", "127.0.0.1", 39899, false);
    expect("torchrun-standalone", "torchrun", "torchrun cb6db76f-7823-4280-afe4-2516865212b8",
           "localhost", 40719, true);
    expect("torchrun-static", "torchrun", "torchrun none", "127.0.0.1", 45597, true);
    expect("torchrun-c10d", "torchrun", "torchrun seven", "localhost", 42507, true);
    expect("mpirun", "PMIx", "PMIx 1255604225", "192.0.2.2", 0, false);
    expect("srun", "Slurm step 3.0", "Slurm step 3.0", "node1", 0, false);
    expect("srun-pmix", "PMIx", "PMIx slurm.pmix.6.0", "node1", 0, false);
}

}  // namespace
}  // namespace yoke
