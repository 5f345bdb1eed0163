// Refusals of unfit modules: the message has the module's name, the reason and advice.
#include "core/backend/registry.h"

#include "core/backend/ops.inc"
#include "core/base/error.h"

#include <gtest/gtest.h>

namespace yoke {

Backend open(const char *wrong)
{
    return detail::open_module("test", std::string(MODULES "/") + wrong);
}

std::string path(const char *wrong)
{
    return std::string(MODULES "/") + wrong + "/libyoke_test.so";
}

void expect_refused(const char *wrong, const std::string &reason)
{
    const Backend backend = open(wrong);
    EXPECT_EQ(backend.table, nullptr) << wrong;
    EXPECT_TRUE(backend.defect) << wrong << " is there, but broken";
    EXPECT_EQ(backend.reason, path(wrong) + reason);
}

constexpr const char *kRemedy = "; rebuild it or install the matching module";

TEST(Modules, AWholeModuleIsTaken)
{
    const Backend backend = open("NOTHING");
    ASSERT_NE(backend.table, nullptr) << backend.reason;
    EXPECT_STREQ(backend.table->kind, "test");
    EXPECT_EQ(backend.reason, "");
    EXPECT_FALSE(backend.defect);
}

TEST(Modules, AModuleOfAnotherOpTableIsRefusedWithBothHashes)
{
    expect_refused(
        "HASH",
        format(
            " was built from another op table (hash 0123456789abcdef, but this library's is %016llx)%s",
            static_cast<unsigned long long>(YOKE_OP_TABLE_HASH), kRemedy));
}

TEST(Modules, AModuleOfAnotherContractIsRefusedWithBothNumbers)
{
    expect_refused("ABI", format(" has backend ABI 999, but this library has %d%s",
                                 YOKE_BACKEND_ABI, kRemedy));
    expect_refused("SIZE",
                   format(" has a backend table of 8 bytes, but this library's table has %zu%s",
                          sizeof(yoke_backend), kRemedy));
}

TEST(Modules, AModuleOfAnotherKindOrNumberOfKernelsIsRefused)
{
    expect_refused("KIND", std::string(" holds a backend of kind 'other', not 'test'") + kRemedy);
    expect_refused("COUNT",
                   format(" has 3 kernels, but the op table has %d ops%s", YOKE_OP_COUNT, kRemedy));
}

TEST(Modules, AModuleThatLacksAnEntryIsRefusedByItsName)
{
    expect_refused("ENTRY", std::string(" does not have the required entry 'copy'") + kRemedy);
    expect_refused("GROUP", std::string(" does not have the required entry 'host_free'") + kRemedy);
    expect_refused("TABLE", std::string(" returned no table; ") + (kRemedy + 2));
}

TEST(Modules, ALibraryWithoutTheSymbolIsRefused)
{
    expect_refused("SYMBOL",
                   " has no symbol yoke_backend_get_v1: the file is not a module of this release; "
                   "reinstall it");
}

TEST(Modules, AModuleThatGivesUpPassesItsReasonOn)
{
    const Backend backend = open("STATUS");
    EXPECT_EQ(backend.table, nullptr);
    EXPECT_NE(backend.reason.find("the driver is older than this module; install a newer one"),
              std::string::npos)
        << backend.reason;
}

TEST(Modules, AFileThatIsNoLibraryIsRefused)
{
    const Backend backend = open("TEXT");
    EXPECT_EQ(backend.table, nullptr);
    EXPECT_TRUE(backend.defect);
    EXPECT_NE(backend.reason.find(path("TEXT")), std::string::npos) << backend.reason;
    EXPECT_NE(backend.reason.find("reinstall the module or what it needs"), std::string::npos)
        << backend.reason;
}

TEST(Modules, AModuleThatIsNotThereIsNoDefect)
{
    const Backend backend = open("NOWHERE");
    EXPECT_EQ(backend.table, nullptr);
    EXPECT_FALSE(backend.defect);
    EXPECT_EQ(backend.reason,
              path("NOWHERE") +
                  " is not there: this installation has no test module; use the cpu, or "
                  "build Yoke on a machine with nvcc (docs/building.md)");
}

}  // namespace yoke
