// File of a store after former runs and killed writers.
#include "core/store/store_file.h"

#include "tests/core/base/soon.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"

#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>

namespace {
std::atomic<bool> is_disk_broken{false};
}

// Replaces the system's pread.
extern "C" ssize_t pread(int fd, void *bytes, size_t size, off_t from)
{
    if (!is_disk_broken) return syscall(SYS_pread64, fd, bytes, size, from);
    errno = EIO;
    return -1;
}

namespace yoke {
namespace {

using test::expect_error;
using test::soon;

std::string path_of(const char *name)
{
    return testing::TempDir() + "yoke-file-" + name + std::to_string(getpid());
}

TEST(FileStore, WhatAFormerRunHasLeftIsDropped)
{
    const std::string path = path_of("left");
    EXPECT_TRUE(test::passes_in_child([&] {
        const auto store = open_file_store(path, "job", soon());
        store->set("key", "old", soon());
        _exit(0);  // like a kill: the file stays
    }));
    EXPECT_TRUE(std::filesystem::exists(path));
    const auto store = open_file_store(path, "job", soon());
    EXPECT_EQ(store->try_get("key", soon()), std::nullopt);
}

TEST(FileStore, TheLastOneRemovesTheFile)
{
    const std::string path = path_of("last");
    auto first = open_file_store(path, "job", soon()),
         second = open_file_store(path, "job", soon());
    first->set("key", "1", soon());
    first.reset();
    EXPECT_EQ(second->get("key", soon()), "1");
    second.reset();
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(FileStore, ALivingJobKeepsOthersOut)
{
    const std::string path = path_of("other");
    const auto store = open_file_store(path, "job 1", soon());
    expect_error(YOKE_E_COMM, {path.c_str(), "'job 1'", "'job 2'"},
                 [&] { open_file_store(path, "job 2", soon()); });
    store->set("key", "1", soon());
    EXPECT_EQ(open_file_store(path, "job 1", soon())->get("key", soon()), "1");
}

TEST(FileStore, WhatAKilledWriterHasLeftHalfWrittenIsCutOff)
{
    const std::string path = path_of("torn");
    const auto store = open_file_store(path, "job", soon());
    const auto other = open_file_store(path, "job", soon());
    store->set("key", std::string(100, 'x'), soon());
    const auto whole = std::filesystem::file_size(path);
    std::filesystem::resize_file(path,
                                 whole - 10);  // cuts a change not read by the other store
    EXPECT_EQ(other->try_get("key", soon()), std::nullopt);
    other->set("after", "1", soon());
    EXPECT_EQ(other->get("after", soon()), "1");
    EXPECT_EQ(open_file_store(path, "job", soon())->try_get("key", soon()), std::nullopt);
    std::ofstream(path, std::ios::app) << std::string(40, '\xff');
    EXPECT_EQ(open_file_store(path, "job", soon())->add("count", 2, soon()), 2);
    EXPECT_EQ(other->get("count", soon()), "2");
}

TEST(FileStore, AFileThatCannotBeMadeIsNamed)
{
    expect_error(YOKE_E_IO, {"/no/such/folder/x", "No such file"},
                 [] { open_file_store("/no/such/folder/x", "job", soon()); });
}

TEST(FileStore, WhoCannotReadItLetsOthersWrite)
{
    const std::string path = path_of("broken");
    const auto store = open_file_store(path, "job", soon()),
               other = open_file_store(path, "job", soon());
    store->set("key", "1", soon());
    is_disk_broken = true;
    expect_error(YOKE_E_IO, {path.c_str(), "read"}, [&] { other->set("key", "2", soon()); });
    is_disk_broken = false;
    store->set("key", "3", Deadline::after(1));
    EXPECT_EQ(other->get("key", soon()), "3");
}

TEST(FileStore, ProcessesCountTogether)
{
    const std::string path = path_of("count");
    const auto store = open_file_store(path, "job", soon());
    pid_t children[3];
    for (pid_t &child : children) {
        child = fork();
        if (child != 0) continue;
        alarm(20);
        expect_error(YOKE_E_FORKED, {"forked"}, [&] { store->add("count", 1, soon()); });
        const auto own = open_file_store(path, "job", soon());
        for (int i = 0; i < 20; ++i) own->add("count", 1, soon());
        test::end_process();
    }
    for (const pid_t child : children) {
        int status = -1;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(store->get("count", soon()), "60");
}

}  // namespace
}  // namespace yoke
