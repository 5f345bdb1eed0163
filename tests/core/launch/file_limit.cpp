// The limit of open files amid several runs.
#include "core/launch/file_limit.h"

#include <gtest/gtest.h>

#include <optional>

namespace yoke {
namespace {

rlim_t limit()
{
    struct rlimit now;
    getrlimit(RLIMIT_NOFILE, &now);
    return now.rlim_cur;
}

TEST(FileLimit, HasRoomForAllRunsAndComesBackWithTheLast)
{
    struct rlimit former;
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &former), 0);
    struct rlimit low = former;
    low.rlim_cur = 100;
    ASSERT_GE(former.rlim_max, 1200u);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    std::optional<FileLimit> first(std::in_place, 200);
    EXPECT_GE(limit(), 600u);
    std::optional<FileLimit> second(std::in_place, 100);
    EXPECT_GE(limit(), 900u);
    EXPECT_EQ(first->before(), 100u);
    EXPECT_EQ(second->before(), 100u) << "ranks get the limit of before";
    first.reset();
    EXPECT_GE(limit(), 300u) << "the other run goes on";
    second.reset();
    EXPECT_EQ(limit(), 100u);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &former), 0);
}

}  // namespace
}  // namespace yoke
