// The search for NCCL: usable copies, and messages about unusable copies.
#include <cstdlib>
#include <fstream>

#include "ranks.h"
#include "tests/core/fresh_process.h"

namespace yoke::test {

namespace {

std::string why_not(const char *folders)
{
    open_module(folders);
    char why[4096] = "unset";
    EXPECT_EQ(engine().version(20, why, sizeof why), 0);
    return why;
}

void expect_has(const std::string &text, const std::vector<std::string> &parts)
{
    for (const std::string &part : parts)
        EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

bool is_mapped()
{
    std::ifstream maps("/proc/self/maps");
    const std::string all{std::istreambuf_iterator<char>(maps), {}};
    return all.find("libnccl") != std::string::npos;
}

}  // namespace

TEST(NcclLibrary, NothingOfItIsMappedUntilSomebodyAsks)
{
    in_fresh_process([] {
        void *device = nullptr;
        EXPECT_EQ(open_module().device_open(0, &device), YOKE_OK);
        EXPECT_FALSE(is_mapped());
        char why[64] = "unset";
        EXPECT_GE(engine().version(20, why, sizeof why), 22800);
        EXPECT_STREQ(why, "");
        EXPECT_TRUE(is_mapped());
        EXPECT_STREQ(engine().name, "nccl");
        EXPECT_EQ(engine().is_late, 1);
    });
}

TEST(NcclLibrary, EachPlaceIsToldWithThePackageWhereThereIsNone)
{
    in_fresh_process([] {
        const std::string why = why_not("/nowhere/nccl:" NCCL_FOLDERS "/broken");
        expect_has(why, {"NCCL 2.19 or later cannot be loaded; tried ",
                         "/nowhere/nccl/libnccl.so.2 (no such file), ",
                         NCCL_FOLDERS "/broken/libnccl.so.2 (", "'pip install nvidia-nccl-cu",
                         "YOKE_CUDA_LIB_PATH"});
    });
}

TEST(NcclLibrary, OneThatIsTooOldIsToldWithItsVersion)
{
    in_fresh_process([] {
        expect_has(
            why_not(NCCL_FOLDERS "/too_old"),
            {"/too_old/libnccl.so.2 (the library is version 2.18.5, but this module needs 2.19"});
    });
}

TEST(NcclLibrary, OneThatLacksACallIsToldWithItsName)
{
    in_fresh_process([] {
        expect_has(why_not(NCCL_FOLDERS "/partial"),
                   {"/partial/libnccl.so.2 (the library has no ncclGetUniqueId)"});
    });
}

TEST(NcclLibrary, WhatNeedsItFailsWithTheReason)
{
    in_fresh_process([] {
        open_module(NCCL_FOLDERS "/too_old:" DRIVER_FOLDER);
        char id[YOKE_COMM_ID_BYTES] = {};
        expect_fails(YOKE_E_UNAVAILABLE, engine().unique_id(id, 20),
                     {"unique_id: NCCL 2.19 or later cannot be loaded", "2.18.5"});
        Board board(1);
        const Layout layout{.size = 1};
        const std::string no_id(YOKE_COMM_ID_BYTES, '\0');
        Rank rank(layout, board, 0, no_id);
        expect_fails(YOKE_E_UNAVAILABLE, rank.init(), {"init: NCCL 2.19 or later", "2.18.5"});
    });
}

}  // namespace yoke::test
