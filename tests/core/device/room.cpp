// What the host's memory is for this process: the least of machine, control groups and limits of the process.
#include "core/device/room.h"

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

class HostRoom : public testing::Test {
protected:
    HostRoom()
        : root_(std::filesystem::temp_directory_path() / ("yoke_room_" + std::to_string(getpid())))
    {
        std::filesystem::remove_all(root_);
        std::filesystem::create_directories(root_);
    }
    ~HostRoom() override { std::filesystem::remove_all(root_); }
    void write(const std::string &file, const std::string &text)
    {
        std::filesystem::create_directories((root_ / file).parent_path());
        std::ofstream(root_ / file) << text << "\n";
    }
    Groups groups(const std::string &proc) const { return {proc, root_}; }
    // A machine of 1,000 MiB, 800 of them free.
    Room within(const std::string &proc, const detail::ProcessLimits &process = kNoLimits) const
    {
        Room room{800 * kMiB, 1000 * kMiB, "", false};
        detail::limit_room(room, groups(proc), process);
        return room;
    }

    std::filesystem::path root_;
};

TEST_F(HostRoom, IsTheMachinesWhereNothingLimits)
{
    write("memory.max", "max");
    const Room room = within("0::/\n");
    EXPECT_EQ(room.free, 800 * kMiB);
    EXPECT_EQ(room.total, 1000 * kMiB);
    EXPECT_EQ(room.limit, "");
}

TEST_F(HostRoom, IsTheTightestGroupsOnTheWayToTheRoot)
{
    write("memory.max", "max");
    write("a/memory.max", std::to_string(600 * kMiB));
    write("a/memory.current", std::to_string(500 * kMiB));
    write("a/memory.stat", "anon 1\nactive_file " + std::to_string(100 * kMiB) +
                               "\ninactive_file " + std::to_string(50 * kMiB));
    write("a/b/memory.max", std::to_string(400 * kMiB));
    write("a/b/memory.current", std::to_string(10 * kMiB));
    const Room room = within("0::/a/b\n");
    EXPECT_EQ(room.free, 250 * kMiB);  // files that were read are given back
    EXPECT_EQ(room.total, 600 * kMiB);
    EXPECT_NE(room.limit.find("a/memory.max"), std::string::npos) << room.limit;
    EXPECT_TRUE(room.kills);
}

TEST_F(HostRoom, ReadsVersionOneToo)
{
    write("memory/x/memory.limit_in_bytes", std::to_string(300 * kMiB));
    write("memory/x/memory.usage_in_bytes", std::to_string(100 * kMiB));
    write("memory/x/memory.stat", "total_inactive_file " + std::to_string(20 * kMiB));
    write("memory/memory.limit_in_bytes", "9223372036854771712");  // none
    const Room room = within("5:cpu:/y\n4:memory:/x\n");
    EXPECT_EQ(room.free, 220 * kMiB);
    EXPECT_EQ(room.total, 300 * kMiB);
}

TEST_F(HostRoom, NamesTheLimitOfTheProcessThatIsTightest)
{
    Room room = within("", {300 * kMiB, 700 * kMiB, 0, UINT64_MAX});
    EXPECT_EQ(room.free, 400 * kMiB);
    EXPECT_EQ(room.total, 700 * kMiB);
    EXPECT_EQ(room.limit, "RLIMIT_AS (ulimit -v)");
    EXPECT_FALSE(room.kills);
    room = within("", {300 * kMiB, 700 * kMiB, 150 * kMiB, 200 * kMiB});
    EXPECT_EQ(room.free, 50 * kMiB);
    EXPECT_EQ(room.limit, "RLIMIT_DATA (ulimit -d)");
    room = within("", {900 * kMiB, 700 * kMiB, 0, UINT64_MAX});
    EXPECT_EQ(room.free, 0u);
}

TEST(HostRoomHere, KnowsTheLimitsOfThisProcess)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer takes more of the address space than any limit leaves";
#endif
    test::in_fresh_process([] {
        const rlimit wanted{uint64_t{2} << 30, RLIM_INFINITY};
        ASSERT_EQ(setrlimit(RLIMIT_AS, &wanted), 0);
        Room room;
        ASSERT_EQ(room_on(*devices_of("cpu").front(), &room), YOKE_OK);
        EXPECT_LE(room.total, uint64_t{2} << 30);
        EXPECT_LT(room.free, room.total);
        EXPECT_GT(room.free, uint64_t{1} << 30);
        expect_error(
            YOKE_E_OOM,
            {"of 2.00 GiB are free within RLIMIT_AS (ulimit -v); raise that limit (ulimit -v unlimited, or -d)",
             "ask for less"},
            [] { allocate_block(*devices_of("cpu").front(), uint64_t{4} << 30, 0); });
    });
}

Groups small_group()
{
    return {"0::/\n", std::filesystem::temp_directory_path() / "yoke_small_group"};
}

TEST(HostRoomHere, WhatTheGroupHasNoRoomForIsAnErrorAndNotTheEndOfTheProcess)
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
                      "memory.max", "the kernel would end the process"},
                     [&] { allocate_block(cpu, 64 * kMiB, 0); });
        Block *block = allocate_block(cpu, 32 * kMiB, 0);
        EXPECT_NE(block, nullptr);
        free_block(cpu, block);
        std::filesystem::remove_all(folder);
    });
}

}  // namespace
}  // namespace yoke
