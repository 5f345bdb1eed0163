// Host memory for this process: the least of machine, control groups and limits of the process.
#include "core/device/free_memory.h"

#include "core/backend/registry.h"
#include "core/memory/memory.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"

#include <sys/resource.h>
#include <filesystem>
#include <fstream>

namespace yoke {
namespace {

using test::expect_error;

constexpr uint64_t kMiB = 1 << 20;
constexpr detail::ProcessLimits kNoLimits{0, UINT64_MAX, 0, UINT64_MAX};

class HostFreeMemory : public testing::Test {
protected:
    HostFreeMemory()
        : root_(std::filesystem::temp_directory_path() / ("yoke_room_" + std::to_string(getpid())))
    {
        std::filesystem::remove_all(root_);
        std::filesystem::create_directories(root_);
    }
    ~HostFreeMemory() override { std::filesystem::remove_all(root_); }
    void write(const std::string &file, const std::string &text)
    {
        std::filesystem::create_directories((root_ / file).parent_path());
        std::ofstream(root_ / file) << text << "\n";
    }
    Groups groups(const std::string &proc) const { return {proc, root_}; }
    // Returns the memory of a machine with 1,000 MiB, 800 of them free, within these limits.
    FreeMemory within(const std::string &proc,
                      const detail::ProcessLimits &process = kNoLimits) const
    {
        FreeMemory free_memory{800 * kMiB, 1000 * kMiB, "", false};
        detail::limit_free_memory(free_memory, groups(proc), process);
        return free_memory;
    }

    std::filesystem::path root_;
};

TEST_F(HostFreeMemory, IsTheMachinesWhereNothingLimits)
{
    write("memory.max", "max");
    const FreeMemory free_memory = within("0::/\n");
    EXPECT_EQ(free_memory.free, 800 * kMiB);
    EXPECT_EQ(free_memory.total, 1000 * kMiB);
    EXPECT_EQ(free_memory.limit, "");
}

TEST_F(HostFreeMemory, IsTheTightestGroupsOnTheWayToTheRoot)
{
    write("memory.max", "max");
    write("a/memory.max", std::to_string(600 * kMiB));
    write("a/memory.current", std::to_string(500 * kMiB));
    write("a/memory.stat", "anon 1\nactive_file " + std::to_string(100 * kMiB) +
                               "\ninactive_file " + std::to_string(50 * kMiB));
    write("a/b/memory.max", std::to_string(400 * kMiB));
    write("a/b/memory.current", std::to_string(10 * kMiB));
    const FreeMemory free_memory = within("0::/a/b\n");
    EXPECT_EQ(free_memory.free, 250 * kMiB);  // cached files count as free
    EXPECT_EQ(free_memory.total, 600 * kMiB);
    EXPECT_NE(free_memory.limit.find("a/memory.max"), std::string::npos) << free_memory.limit;
    EXPECT_TRUE(free_memory.kills);
}

TEST_F(HostFreeMemory, ReadsVersionOneToo)
{
    write("memory/x/memory.limit_in_bytes", std::to_string(300 * kMiB));
    write("memory/x/memory.usage_in_bytes", std::to_string(100 * kMiB));
    write("memory/x/memory.stat", "total_inactive_file " + std::to_string(20 * kMiB));
    write("memory/memory.limit_in_bytes", "9223372036854771712");  // no limit
    const FreeMemory free_memory = within("5:cpu:/y\n4:memory:/x\n");
    EXPECT_EQ(free_memory.free, 220 * kMiB);
    EXPECT_EQ(free_memory.total, 300 * kMiB);
}

TEST_F(HostFreeMemory, NamesTheLimitOfTheProcessThatIsTightest)
{
    FreeMemory free_memory = within("", {300 * kMiB, 700 * kMiB, 0, UINT64_MAX});
    EXPECT_EQ(free_memory.free, 400 * kMiB);
    EXPECT_EQ(free_memory.total, 700 * kMiB);
    EXPECT_EQ(free_memory.limit, "RLIMIT_AS (ulimit -v)");
    EXPECT_FALSE(free_memory.kills);
    free_memory = within("", {300 * kMiB, 700 * kMiB, 150 * kMiB, 200 * kMiB});
    EXPECT_EQ(free_memory.free, 50 * kMiB);
    EXPECT_EQ(free_memory.limit, "RLIMIT_DATA (ulimit -d)");
    free_memory = within("", {900 * kMiB, 700 * kMiB, 0, UINT64_MAX});
    EXPECT_EQ(free_memory.free, 0u);
}

TEST(HostFreeMemoryHere, KnowsTheLimitsOfThisProcess)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer takes more of the address space than any limit leaves";
#endif
    test::in_fresh_process([] {
        const rlimit wanted{uint64_t{2} << 30, RLIM_INFINITY};
        ASSERT_EQ(setrlimit(RLIMIT_AS, &wanted), 0);
        FreeMemory free_memory;
        ASSERT_EQ(free_memory_on(*devices_of("cpu").front(), &free_memory), YOKE_OK);
        EXPECT_LE(free_memory.total, uint64_t{2} << 30);
        EXPECT_LT(free_memory.free, free_memory.total);
        EXPECT_GT(free_memory.free, uint64_t{1} << 30);
        expect_error(
            YOKE_E_OOM,
            {"of 2.00 GiB are free within RLIMIT_AS (ulimit -v); raise that limit (ulimit -v unlimited, or -d)",
             "request less memory"},
            [] { allocate_block(*devices_of("cpu").front(), uint64_t{4} << 30, 0); });
    });
}

Groups small_group()
{
    return {"0::/\n", std::filesystem::temp_directory_path() / "yoke_small_group"};
}

TEST(HostFreeMemoryHere, WhatTheGroupHasNoRoomForIsAnErrorAndNotTheEndOfTheProcess)
{
    test::in_fresh_process([] {
        const std::filesystem::path folder = small_group().mount;
        std::filesystem::create_directories(folder);
        std::ofstream(folder / "memory.max") << 600 * kMiB << "\n";
        std::ofstream(folder / "memory.current") << 550 * kMiB << "\n";
        detail::groups_of_process = small_group;
        Device &cpu = *devices_of("cpu").front();
        expect_error(YOKE_E_OOM,
                     {"50.00 MiB of 600.00 MiB are free within the control group's limit in ",
                      "memory.max", "the kernel would kill a process"},
                     [&] { allocate_block(cpu, 64 * kMiB, 0); });
        Block *block = allocate_block(cpu, 32 * kMiB, 0);
        EXPECT_NE(block, nullptr);
        free_block(cpu, block);
        std::filesystem::remove_all(folder);
    });
}

}  // namespace
}  // namespace yoke
