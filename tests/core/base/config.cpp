// Values that are set, read from the environment, or refused; threads; quotas; the log.
#include "core/base/config.h"
#include "core/base/cgroup.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/base/thread_state.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"

#include <sched.h>
#include <filesystem>
#include <fstream>
#include <thread>

namespace yoke {
namespace {

using test::expect_error;
using test::in_fresh_process;

TEST(Config, AKeyThatIsOnlyLookedAtKeepsOneCopyOfItsText)
{
    test::in_fresh_process([] {
        setenv("YOKE_DEVICE", "cpu", 1);
        const char *first = peek_config("YOKE_DEVICE");
        ASSERT_STREQ(first, "cpu");
        EXPECT_EQ(peek_config("YOKE_DEVICE"), first);
    });
}

TEST(Config, ASwitchIsWhatTheProgramSetAndElseWhatItsKeySays)
{
    test::in_fresh_process([] {
        setenv("YOKE_NO_CACHING", "1", 1);
        Switch asked("YOKE_NO_CACHING"), given("YOKE_NO_CACHING");
        EXPECT_FALSE(asked.is_known_as(true) || asked.is_known_as(false));
        EXPECT_TRUE(asked.is_on());
        EXPECT_TRUE(asked.is_known_as(true));
        given.set(false);
        EXPECT_FALSE(given.is_on());
        EXPECT_TRUE(given.is_known_as(false));
    });
    test::in_fresh_process([] {
        setenv("YOKE_NO_CACHING", "perhaps", 1);
        Switch strict("YOKE_NO_CACHING"), silent("YOKE_NO_CACHING", try_config);
        expect_error(YOKE_E_VALUE, {"YOKE_NO_CACHING", "perhaps"}, [&] { strict.is_on(); });
        EXPECT_FALSE(silent.is_on());
    });
}

TEST(Config, ANumberIsWhatTheProgramSetAndElseWhatItsKeySaysAndElseItsDefault)
{
    constexpr const char *kKey = "YOKE_CUDNN_WORKSPACE_LIMIT";
    test::in_fresh_process([] {
        setenv(kKey, "9223372036854775807", 1);
        Number asked(kKey), given(kKey);
        EXPECT_EQ(asked.get(), INT64_MAX);
        given.set(0);
        EXPECT_EQ(given.get(), 0);
    });
    test::in_fresh_process([] { EXPECT_EQ(Number(kKey).get(), int64_t{256} << 20); });
    for (const char *text : {"-1", "9223372036854775808", "1.5", "256M", " 1"})
        test::in_fresh_process([&] {
            setenv(kKey, text, 1);
            Number number(kKey);
            expect_error(YOKE_E_VALUE, {kKey, text, "bytes, a whole number from 0 to"},
                         [&] { number.get(); });
        });
}

TEST(Config, AnUnknownKeyIsRefusedWithTheOneThatWasMeant)
{
    expect_error(YOKE_E_VALUE, {"'YOKE_PLATFORM'", "did you mean 'YOKE_PLATFORMS'"},
                 [] { peek_config("YOKE_PLATFORM"); });
    expect_error(YOKE_E_VALUE, {"'yoke_log'", "did you mean 'YOKE_LOG'"},
                 [] { set_config("yoke_log", "info"); });
    expect_error(YOKE_E_VALUE, {"'COLOUR'", "the keys are YOKE_PLATFORMS, YOKE_DEVICE"},
                 [] { config("COLOUR"); });
    EXPECT_EQ(try_config("COLOUR"), nullptr);
}

TEST(Config, AValueThatCannotBeReadNamesKeyValueAndWhatIsAllowed)
{
    struct Case {
        const char *key, *value, *allowed;
    };
    for (const Case &c :
         {Case{"YOKE_NO_CACHING", "yes", "0 or 1"}, Case{"YOKE_NUM_THREADS", "0", "1 to 1024"},
          Case{"YOKE_NUM_THREADS", "4x", "1 to 1024"},
          Case{"YOKE_NUM_THREADS", "1025", "1 to 1024"},
          Case{"YOKE_LOG", "Info", "error, warn, info or debug"},
          Case{"YOKE_CPU_ISA", "avx2", "base, v3 or v4"},
          Case{"YOKE_PLATFORMS", "cpu,,cuda", "separated by commas"},
          Case{"YOKE_PLATFORMS", "cpu,cpu", "each once"},
          Case{"YOKE_CUDNN_BENCHMARK_LIMIT", "-1", "0 (all) to 2147483647"},
          Case{"YOKE_CUDNN_BENCHMARK_LIMIT", "2147483648", "0 (all) to 2147483647"}})
        expect_error(YOKE_E_VALUE, {c.key, c.value, c.allowed},
                     [&] { set_config(c.key, c.value); });
}

TEST(Config, TheHostsValueGoesBeforeTheVariable)
{
    in_fresh_process([] {
        setenv("YOKE_NUM_THREADS", "3", 1);
        EXPECT_STREQ(peek_config("YOKE_NUM_THREADS"), "3");
        set_config("YOKE_NUM_THREADS", "2");
        EXPECT_STREQ(config("YOKE_NUM_THREADS"), "2");
        EXPECT_EQ(num_threads(), 2);
    });
}

TEST(Config, AfterFirstUseAValueStandsAndAChangeIsWarnedOfOnce)
{
    in_fresh_process([] {
        static std::string said;
        set_log_callback([](void *, int32_t, const char *text) { said += text; }, nullptr, nullptr);
        setenv("YOKE_DEVICE", "cpu", 1);
        const char *first = config("YOKE_DEVICE");
        setenv("YOKE_DEVICE", "cuda", 1);
        EXPECT_EQ(config("YOKE_DEVICE"), first);
        EXPECT_STREQ(first, "cpu");
        warn_of_late_changes();
        EXPECT_NE(said.find("YOKE_DEVICE was changed to 'cuda'"), std::string::npos) << said;
        const std::string once = said;
        warn_of_late_changes();
        EXPECT_EQ(said, once);
        expect_error(YOKE_E_STATE, {"YOKE_DEVICE", "'auto'", "'cpu'"},
                     [] { set_config("YOKE_DEVICE", "auto"); });
    });
}

TEST(Config, AnUnreadableVariableIsAnErrorAtEveryUseUntilItIsSet)
{
    in_fresh_process([] {
        setenv("YOKE_NO_CACHING", "maybe", 1);
        for (int i = 0; i < 2; ++i)
            expect_error(YOKE_E_VALUE, {"YOKE_NO_CACHING", "'maybe'"},
                         [] { config("YOKE_NO_CACHING"); });
        expect_error(YOKE_E_VALUE, {"YOKE_NO_CACHING"}, [] { check_config(); });
        EXPECT_STREQ(try_config("YOKE_NO_CACHING"), "0") << "its default";
        set_config("YOKE_NO_CACHING", "1");
        EXPECT_STREQ(config("YOKE_NO_CACHING"), "1");
    });
}

TEST(Config, EveryProblemIsNamedAndEverySlip)
{
    in_fresh_process([] {
        setenv("YOKE_NO_CACHING", "maybe", 1);
        setenv("YOKE_NUM_THREADS", "many", 1);
        const std::vector<ConfigProblem> problems = config_problems();
        ASSERT_EQ(problems.size(), 2u);
        EXPECT_NE(problems[0].text.find("YOKE_NO_CACHING"), std::string::npos) << problems[0].text;
        EXPECT_NE(problems[1].text.find("YOKE_NUM_THREADS"), std::string::npos) << problems[1].text;
        setenv("YOKE_DEVCE", "cpu", 1);
        setenv("YOKE_PLATFORM", "cpu", 1);
        setenv("YOKE_LOG_LEVL", "debug", 1);
        // Variables of tests and of other programs, and a name far from every known name.
        for (const char *other : {"YOKE_BIN", "YOKE_BUILD_DIR", "YOKE_SOAK", "YOKE_PIANO", "YOKED"})
            setenv(other, "1", 1);
        using Slips = std::vector<std::pair<std::string, std::string>>;
        EXPECT_EQ(misspelt_variables(), (Slips{{"YOKE_DEVCE", "YOKE_DEVICE"},
                                               {"YOKE_LOG_LEVL", "YOKE_LOG"},
                                               {"YOKE_PLATFORM", "YOKE_PLATFORMS"}}));
    });
}

TEST(Config, ASlipIsWarnedOfOnce)
{
    in_fresh_process([] {
        setenv("YOKE_DEVCE", "cpu", 1);
        std::string told;
        const auto keep = [](void *user, int32_t, const char *message) {
            *static_cast<std::string *>(user) += message;
        };
        const int64_t id = add_log_callback(keep, &told, nullptr);
        for (int i = 0; i < 2; ++i) warn_of_misspelt_variables();
        remove_log_callback(id);
        EXPECT_EQ(
            told,
            "there is no setting YOKE_DEVCE, so the variable has no effect; did you mean YOKE_DEVICE?");
    });
}

TEST(Config, AnEmptyValueCountsAsAbsent)
{
    in_fresh_process([] {
        setenv("YOKE_DEVICE", "", 1);
        setenv("YOKE_NUM_THREADS", "4", 1);
        EXPECT_EQ(config("YOKE_DEVICE"), nullptr);
        set_config("YOKE_NUM_THREADS", "");
        EXPECT_EQ(config("YOKE_NUM_THREADS"), nullptr);
    });
}

TEST(Config, ListsAreSplitAtCommasWithoutBlanks)
{
    EXPECT_EQ(split_list(" a , b,c "), (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_EQ(split_list(""), (std::vector<std::string>{""}));
    EXPECT_EQ(split_list("a,"), (std::vector<std::string>{"a", ""}));
}

TEST(Threads, TheProcesssSettingThenVariables)
{
    in_fresh_process([] {
        setenv("OMP_NUM_THREADS", "5,2", 1);
        EXPECT_EQ(num_threads(), 5);
        set_num_threads(3);
        EXPECT_EQ(num_threads(), 3);
        std::thread([] { EXPECT_EQ(num_threads(), 3); }).join();
        set_num_threads(0);
        EXPECT_EQ(num_threads(), 5);
        for (const int32_t bad : {-1, 1025})
            expect_error(YOKE_E_VALUE, {std::to_string(bad).c_str()},
                         [&] { set_num_threads(bad); });
    });
}

TEST(Threads, NeverMoreThanTheCoresThatTheProcessMayUse)
{
    in_fresh_process([] {
        unsetenv("OMP_NUM_THREADS");
        unsetenv("YOKE_NUM_THREADS");
        cpu_set_t one;
        CPU_ZERO(&one);
        cpu_set_t all;
        sched_getaffinity(0, sizeof all, &all);
        for (int i = 0; i < CPU_SETSIZE; ++i)
            if (CPU_ISSET(i, &all)) {
                CPU_SET(i, &one);
                break;
            }
        sched_setaffinity(0, sizeof one, &one);
        EXPECT_EQ(num_threads(), 1);
    });
}

TEST(Threads, OnlyTheFirstNumberOfOmpNumThreadsCounts)
{
    EXPECT_EQ(detail::leading_count(nullptr), 0);
    EXPECT_EQ(detail::leading_count(""), 0);
    EXPECT_EQ(detail::leading_count("x"), 0);
    EXPECT_EQ(detail::leading_count("-2"), 0);
    EXPECT_EQ(detail::leading_count("4 "), 0);
    EXPECT_EQ(detail::leading_count("4,2"), 4);
    EXPECT_EQ(detail::leading_count("99999999999"), 1024);
}

class CgroupQuota : public testing::Test {
protected:
    CgroupQuota()
        : root_(std::filesystem::temp_directory_path() /
                ("yoke_cgroup_" + std::to_string(getpid())))
    {
        std::filesystem::remove_all(root_);
        std::filesystem::create_directories(root_);
    }
    ~CgroupQuota() override { std::filesystem::remove_all(root_); }
    void write(const std::string &file, const std::string &text)
    {
        std::filesystem::create_directories((root_ / file).parent_path());
        std::ofstream(root_ / file) << text << "\n";
    }
    double quota(const std::string &proc) { return Groups{proc, root_}.processors(); }

private:
    std::filesystem::path root_;
};

TEST_F(CgroupQuota, VersionTwoTakesTheLeastOfAllLevels)
{
    write("cpu.max", "max 100000");
    write("a/cpu.max", "150000 100000");
    write("a/b/cpu.max", "400000 100000");
    EXPECT_DOUBLE_EQ(quota("0::/a/b\n"), 1.5);
    EXPECT_DOUBLE_EQ(quota("0::/\n"), 0);
}

TEST_F(CgroupQuota, InsideAContainerTheMountIsTheGroup)
{
    write("cpu.max", "200000 100000");
    EXPECT_DOUBLE_EQ(quota("0::/\n"), 2);
    EXPECT_DOUBLE_EQ(quota("0::/not/visible/here\n"), 2);
}

TEST_F(CgroupQuota, VersionOneReadsTheCpuController)
{
    write("cpu/x/cpu.cfs_quota_us", "50000");
    write("cpu/x/cpu.cfs_period_us", "100000");
    write("cpu/cpu.cfs_quota_us", "-1");
    write("cpu/cpu.cfs_period_us", "100000");
    EXPECT_DOUBLE_EQ(quota("12:memory:/x\n4:cpu,cpuacct:/x\n"), 0.5);
    EXPECT_DOUBLE_EQ(quota("4:cpuset:/x\n"), 0);
}

TEST_F(CgroupQuota, NoLimitAndGarbageAreNoQuota)
{
    EXPECT_DOUBLE_EQ(quota(""), 0);
    EXPECT_DOUBLE_EQ(quota("nonsense\n::\n0::\n0::relative\n"), 0);
    write("cpu.max", "garbage");
    EXPECT_DOUBLE_EQ(quota("0::/\n"), 0);
}

struct Heard {
    int calls = 0, drops = 0;
    std::string text;
};
void hear(void *user, int32_t, const char *message)
{
    auto *heard = static_cast<Heard *>(user);
    ++heard->calls;
    heard->text = message;
}
void drop(void *user)
{
    ++static_cast<Heard *>(user)->drops;
}

TEST(Log, TheCallbackHearsItsLevelAndIsDroppedOnce)
{
    in_fresh_process([] {
        Heard first, second;
        log(LogLevel::kError, "nobody listens");
        set_log_callback(hear, &first, drop);
        log(LogLevel::kWarn, "%d sheep", 3);
        EXPECT_EQ(first.text, "3 sheep");
        log(LogLevel::kInfo, "below the level");
        EXPECT_EQ(first.calls, 1);
        set_log_callback(hear, &second, drop);
        EXPECT_EQ(first.drops, 1);
        log(LogLevel::kError, "again");
        EXPECT_EQ(first.calls, 1);
        EXPECT_EQ(second.calls, 1);
        set_log_callback(nullptr, nullptr, nullptr);
        log(LogLevel::kError, "nobody");
        EXPECT_EQ(second.drops, 1);
        EXPECT_EQ(second.calls, 1);
    });
}

TEST(Log, ACallbackMayReplaceItself)
{
    in_fresh_process([] {
        static Heard heard;
        set_log_callback(
            [](void *user, int32_t, const char *) {
                set_log_callback(nullptr, nullptr, nullptr);
                // The callback still runs, so it must not have been dropped yet.
                EXPECT_EQ(static_cast<Heard *>(user)->drops, 0);
            },
            &heard, drop);
        log(LogLevel::kError, "go");
        EXPECT_EQ(heard.drops, 1);
    });
}

TEST(Log, HostsOfOneProcessHearItBesideEachOther)
{
    in_fresh_process([] {
        Heard own, first, second;
        const int64_t one = add_log_callback(hear, &first, drop);
        set_log_callback(hear, &own, drop);
        const int64_t two = add_log_callback(hear, &second, drop);
        EXPECT_NE(one, two);
        log(LogLevel::kError, "all");
        EXPECT_EQ(own.calls + first.calls + second.calls, 3);
        EXPECT_TRUE(remove_log_callback(one));
        EXPECT_FALSE(remove_log_callback(one));
        EXPECT_FALSE(remove_log_callback(0)) << "the host program's own has no number";
        EXPECT_EQ(first.drops, 1);
        set_log_callback(nullptr, nullptr, nullptr);
        log(LogLevel::kError, "one is left");
        EXPECT_EQ(own.calls, 1);
        EXPECT_EQ(first.calls, 1);
        EXPECT_EQ(second.calls, 2);
        EXPECT_EQ(second.drops, 0);
    });
}

TEST(Log, OneThatIsRemovedWhileItIsCalledIsDroppedBehindTheCall)
{
    in_fresh_process([] {
        static Heard heard;
        static int64_t id;
        id = add_log_callback(
            [](void *user, int32_t, const char *) {
                EXPECT_TRUE(remove_log_callback(id));
                EXPECT_EQ(static_cast<Heard *>(user)->drops, 0);
            },
            &heard, drop);
        log(LogLevel::kError, "go");
        EXPECT_EQ(heard.drops, 1);
    });
}

}  // namespace
}  // namespace yoke
