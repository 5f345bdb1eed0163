// The registry's refusals of modules that are only an engine of collectives.
#include "core/backend/comm.h"
#include "core/backend/registry.h"
#include "core/base/error.h"

#include <gtest/gtest.h>

namespace yoke {

static CommModule open_engine(const char *wrong)
{
    return detail::open_comm_module("engine", std::string(MODULES "/") + wrong);
}

static void expect_engine_refused(const char *wrong, const std::string &reason)
{
    const CommModule module = open_engine(wrong);
    EXPECT_EQ(module.table, nullptr) << wrong;
    EXPECT_EQ(module.reason, std::string(MODULES "/") + wrong + "/libyoke_engine.so" + reason);
}

TEST(Engines, AWholeModuleIsTaken)
{
    const CommModule module = open_engine("NOTHING");
    ASSERT_NE(module.table, nullptr) << module.reason;
    EXPECT_STREQ(module.table->name, "engine");
    EXPECT_EQ(module.reason, "");
}

TEST(Engines, WhatDoesNotFitIsSaidWithBothValues)
{
    const std::string remedy = "; rebuild it or install the matching module";
    expect_engine_refused(
        "ABI", format(" has backend ABI 999, but this library has %d", YOKE_BACKEND_ABI) + remedy);
    expect_engine_refused(
        "SIZE", format(" has a table of collectives of 8 bytes, but this library's table has %zu",
                       sizeof(yoke_backend_comm)) +
                    remedy);
    expect_engine_refused("NAME", " holds the engine 'other', not 'engine'" + remedy);
    expect_engine_refused("ENTRY", " does not have the required entry 'abort'" + remedy);
    expect_engine_refused(
        "LATE",
        " runs its calls on streams of a device, but a module without devices has "
        "no streams" +
            remedy);
    expect_engine_refused("LATE_ENTRY", " does not have the required entry 'version'" + remedy);
    expect_engine_refused("TABLE", " returned no table; reinstall it");
    expect_engine_refused(
        "SYMBOL",
        " has no symbol yoke_comm_get_v1: the file is not a module of this release; reinstall it");
}

TEST(Engines, AModuleThatGivesUpPassesItsReasonOn)
{
    const CommModule module = open_engine("STATUS");
    EXPECT_EQ(module.table, nullptr);
    EXPECT_NE(module.reason.find("the engine of the tests gives up"), std::string::npos)
        << module.reason;
}

TEST(Engines, AModuleThatIsNotThereIsToldWithItsRemedy)
{
    const CommModule module = detail::open_comm_module("mpi", "/nowhere");
    EXPECT_EQ(module.table, nullptr);
    EXPECT_NE(module.reason.find("/nowhere/libyoke_mpi.so is not there"), std::string::npos);
    EXPECT_NE(module.reason.find("docs/building.md"), std::string::npos) << module.reason;
}

TEST(Engines, OtherNamesAreNoModules)
{
    EXPECT_EQ(comm_module_of("cpu"), nullptr);
    EXPECT_EQ(comm_module_of("engine"), nullptr);
}

}  // namespace yoke
