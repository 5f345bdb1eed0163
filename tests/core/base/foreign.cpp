// Variables of NCCL, Gloo and PyTorch: effects, priority, and messages about each variable.
#include "core/base/foreign.h"
#include "core/base/config.h"
#include "core/base/log.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"

#include <map>
#include <set>

namespace yoke {
namespace {

using test::expect_error;
using test::in_fresh_process;

// Sets these variables and unsets all other foreign variables.
void set_alone(const std::map<std::string, std::string> &variables)
{
    for (const ForeignVariable &each : foreign_variables()) unsetenv(each.name.c_str());
    for (const char *own : {"YOKE_COMM_SHM", "YOKE_LOG", "YOKE_SOCKET_IFNAME"}) unsetenv(own);
    for (const auto &[name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
}

std::string told(const std::string &name)
{
    for (const ForeignVariable &each : foreign_variables())
        if (each.name == name) return std::string(effect_name(each.effect)) + " " + each.setting;
    return "not found";
}

TEST(Foreign, SetsWhatNobodySet)
{
    in_fresh_process([] {
        set_alone(
            {{"NCCL_SHM_DISABLE", "1"}, {"NCCL_DEBUG", "info"}, {"GLOO_SOCKET_IFNAME", "eth0"}});
        EXPECT_EQ(config_origin("YOKE_COMM_SHM"), "NCCL_SHM_DISABLE");
        EXPECT_STREQ(config("YOKE_COMM_SHM"), "0");
        EXPECT_STREQ(config("YOKE_LOG"), "info");
        EXPECT_STREQ(config("YOKE_SOCKET_IFNAME"), "=eth0");
        EXPECT_EQ(told("NCCL_SHM_DISABLE"), "sets YOKE_COMM_SHM=0");
        EXPECT_EQ(told("NCCL_DEBUG"), "sets YOKE_LOG=info");
        EXPECT_EQ(told("GLOO_SOCKET_IFNAME"), "sets YOKE_SOCKET_IFNAME==eth0");
    });
}

TEST(Foreign, PyTorchsSwitchOfItsCacheIsOurs)
{
    in_fresh_process([] {
        unsetenv("YOKE_NO_CACHING");
        set_alone({{"PYTORCH_NO_CUDA_MEMORY_CACHING", "1"}});
        EXPECT_STREQ(peek_config("YOKE_NO_CACHING"), "1");
        EXPECT_EQ(config_origin("YOKE_NO_CACHING"), "PYTORCH_NO_CUDA_MEMORY_CACHING");
        EXPECT_EQ(told("PYTORCH_NO_CUDA_MEMORY_CACHING"), "sets YOKE_NO_CACHING=1");
        setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "0", 1);
        EXPECT_STREQ(peek_config("YOKE_NO_CACHING"), "0");
        setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "true", 1);
        EXPECT_STREQ(peek_config("YOKE_NO_CACHING"), "1") << "PyTorch looks whether it is set";
        EXPECT_TRUE(config_problems().empty());
        setenv("YOKE_NO_CACHING", "0", 1);
        EXPECT_STREQ(config("YOKE_NO_CACHING"), "0");
    });
}

TEST(Foreign, OurOwnComesFirstBeItSetByTheProgram)
{
    in_fresh_process([] {
        set_alone({{"NCCL_SHM_DISABLE", "1"}, {"NCCL_DEBUG", "TRACE"}, {"YOKE_COMM_SHM", "1"}});
        set_config("YOKE_LOG", "error");
        EXPECT_STREQ(config("YOKE_COMM_SHM"), "1");
        EXPECT_STREQ(config("YOKE_LOG"), "error");
        EXPECT_EQ(told("NCCL_SHM_DISABLE"), "overruled YOKE_COMM_SHM=0");
        EXPECT_EQ(told("NCCL_DEBUG"), "overruled YOKE_LOG=debug");
        EXPECT_EQ(config_origin("YOKE_LOG"), "the program");
    });
}

TEST(Foreign, OfTwoTheFirstOfTheTableDecides)
{
    in_fresh_process([] {
        set_alone({{"GLOO_SOCKET_IFNAME", "eth0"}, {"NCCL_SOCKET_IFNAME", "ib"}});
        EXPECT_STREQ(config("YOKE_SOCKET_IFNAME"), "ib");
        EXPECT_EQ(told("GLOO_SOCKET_IFNAME"), "overruled YOKE_SOCKET_IFNAME==eth0");
    });
}

TEST(Foreign, WhatCannotBeReadIsAnErrorThatNamesIt)
{
    in_fresh_process([] {
        set_alone({{"NCCL_SHM_DISABLE", "yes"}, {"NCCL_DEBUG", "loud"}});
        expect_error(YOKE_E_VALUE, {"NCCL_SHM_DISABLE is 'yes'", "0 or 1"},
                     [] { config("YOKE_COMM_SHM"); });
        expect_error(YOKE_E_VALUE, {"NCCL_DEBUG is 'loud'", "TRACE"}, [] { config("YOKE_LOG"); });
        expect_error(YOKE_E_VALUE, {"NCCL_DEBUG"}, [] { check_config(); });
        EXPECT_EQ(try_config("YOKE_LOG"), nullptr);
        EXPECT_EQ(told("NCCL_SHM_DISABLE"), "unreadable YOKE_COMM_SHM");
        setenv("YOKE_LOG", "warn", 1);  // an own setting stops the search
        EXPECT_STREQ(config("YOKE_LOG"), "warn");
    });
}

TEST(Foreign, WhatSaysNothingOfASettingLeavesIt)
{
    in_fresh_process([] {
        set_alone({{"NCCL_DEBUG", "VERSION"}, {"NCCL_SHM_DISABLE", ""}});
        EXPECT_EQ(config("YOKE_LOG"), nullptr);
        EXPECT_EQ(config("YOKE_COMM_SHM"), nullptr);
        EXPECT_EQ(told("NCCL_DEBUG"), "nothing YOKE_LOG");
        EXPECT_EQ(told("NCCL_SHM_DISABLE"), "not found");
    });
}

TEST(Foreign, AChangeAfterTheFirstUseIsWarnedOf)
{
    in_fresh_process([] {
        set_alone({{"NCCL_SHM_DISABLE", "1"}});
        EXPECT_STREQ(config("YOKE_COMM_SHM"), "0");
        std::string lines;
        const auto keep = [](void *user, int32_t, const char *message) {
            *static_cast<std::string *>(user) += message;
        };
        set_log_callback(keep, &lines, nullptr);
        warn_of_late_changes();
        EXPECT_EQ(lines, "");
        setenv("NCCL_SHM_DISABLE", "0", 1);
        warn_of_late_changes();
        EXPECT_NE(lines.find("NCCL_SHM_DISABLE was changed to '0'"), std::string::npos) << lines;
        EXPECT_NE(lines.find("'0'"), std::string::npos) << lines;
        EXPECT_STREQ(config("YOKE_COMM_SHM"), "0");
    });
}

TEST(Foreign, EveryOneThatIsSetIsTold)
{
    in_fresh_process([] {
        set_alone({{"NCCL_IB_HCA", "mlx5"},
                   {"NCCL_P2P_DISABLE", "1"},
                   {"TORCH_NCCL_BLOCKING_WAIT", "0"},
                   {"NCCL_ASYNC_ERROR_HANDLING", "1"},
                   {"NCCL_PIANO", "1"},
                   {"TORCH_NCCL_PIANO", "1"},
                   {"GLOO_PIANO", "1"},
                   {"TP_SOCKET_IFNAME", "eth0"},
                   {"NCCLX", "1"}});
        std::map<std::string, std::string> all;
        for (const ForeignVariable &each : foreign_variables()) {
            all[each.name] = effect_name(each.effect);
            EXPECT_FALSE(each.says.empty()) << each.name;
        }
        EXPECT_EQ(all, (std::map<std::string, std::string>{{"NCCL_IB_HCA", "passed"},
                                                           {"NCCL_P2P_DISABLE", "passed"},
                                                           {"TORCH_NCCL_BLOCKING_WAIT", "nothing"},
                                                           {"NCCL_ASYNC_ERROR_HANDLING", "always"},
                                                           {"NCCL_PIANO", "unknown"},
                                                           {"TORCH_NCCL_PIANO", "unknown"},
                                                           {"GLOO_PIANO", "unknown"},
                                                           {"TP_SOCKET_IFNAME", "nothing"}}));
    });
}

TEST(Foreign, WhatReachesNcclIsToldApartFromWhatPyTorchAloneReads)
{
    in_fresh_process([] {
        const std::map<std::string, std::string> all{
            {"NCCL_ALGO", "passed "},
            {"NCCL_COMM_BLOCKING", "passed "},
            {"NCCL_CUMEM_ENABLE", "passed "},
            {"NCCL_DEBUG_FILE", "passed "},
            {"NCCL_DEBUG", "sets YOKE_LOG=warn"},
            {"NCCL_SHM_DISABLE", "sets YOKE_COMM_SHM=0"},
            {"NCCL_SHM_LOCALITY", "passed "},
            {"NCCL_SOCKET_IFNAME", "sets YOKE_SOCKET_IFNAME=eth"},
            {"NCCL_BLOCKING_WAIT", "nothing "},
            {"NCCL_TIMEOUT", "nothing "},
            {"TORCH_NCCL_AVOID_RECORD_STREAMS", "always "},
            {"TORCH_NCCL_DESYNC_DEBUG", "always "},
            {"TORCH_NCCL_DUMP_ON_TIMEOUT", "nothing "},
            {"TORCH_NCCL_ENABLE_TIMING", "always "},
            {"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "nothing "},
            {"TORCH_NCCL_TRACE_BUFFER_SIZE", "nothing "},
            {"TORCH_NCCL_USE_COMM_NONBLOCKING", "always "}};
        std::map<std::string, std::string> set;
        for (const auto &[name, effect] : all) set[name] = "1";
        set["NCCL_DEBUG"] = "WARN";
        set["NCCL_SOCKET_IFNAME"] = "eth";
        set_alone(set);
        for (const auto &[name, effect] : all) EXPECT_EQ(told(name), effect) << name;
        for (const ForeignVariable &each : foreign_variables()) {
            const bool is_passed = each.effect == ForeignVariable::kPassed;
            EXPECT_EQ(each.says.starts_with("NCCL reads it"), is_passed) << each.name << each.says;
        }
    });
}

}  // namespace
}  // namespace yoke
