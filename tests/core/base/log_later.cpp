// LogLater keeps lines for the end of a lock that a callback may want: core/base/log.h.
#include "core/base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace yoke {
namespace {

TEST(LogLater, TellsWhatItsThreadHasLoggedWhenItEnds)
{
    std::vector<std::string> told;
    const int64_t id = add_log_callback(
        [](void *user, int32_t, const char *message) {
            auto &lines = *static_cast<std::vector<std::string> *>(user);
            lines.emplace_back(message);
            if (lines.size() == 1) log(LogLevel::kWarn, "a callback may log");
        },
        &told, nullptr);
    {
        const LogLater later;
        log(LogLevel::kWarn, "first %d", 1);
        {
            const LogLater inner;
            log(LogLevel::kWarn, "second");
        }
        EXPECT_TRUE(told.empty());
    }
    EXPECT_EQ(told, (std::vector<std::string>{"first 1", "a callback may log", "second"}));
    log(LogLevel::kWarn, "at once");
    EXPECT_EQ(told.back(), "at once");
    remove_log_callback(id);
}

}  // namespace
}  // namespace yoke
