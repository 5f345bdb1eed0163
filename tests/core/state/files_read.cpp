// Reading files of state, and the lock of their folder: core/state/read_file.cpp, folder_lock.cpp.
#include "core/state/folder_lock.h"
#include "core/state/new_folder.h"
#include "core/state/read_file.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"
#include "tests/core/state/file_seam.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

namespace yoke::test {
namespace {

constexpr const char *kLoadCall = "yoke_load";

class FilesRead : public testing::Test {
protected:
    std::string put(const std::string &content) const
    {
        std::ofstream(folder_.at("state"), std::ios::binary) << content;
        return folder_.at("state");
    }
    void save(const std::string &content) const
    {
        NewFile file(kLoadCall, folder_.at("state"));
        file.write(content.data(), content.size());
        file.commit();
    }

    TemporaryFolder folder_;
};

TEST_F(FilesRead, PartsAreReadAndAFileThatEndsEarlySaysSo)
{
    const ReadFile file(kLoadCall, put("0123456789"));
    EXPECT_EQ(file.size(), 10u);
    char text[5] = {};
    file.read(3, text, 4);
    EXPECT_STREQ(text, "3456");
    file.read(10, text, 0);
    expect_error(YOKE_E_IO, {kLoadCall, "state", "ends early", "byte 10", "of the 12"},
                 [&] { file.read(8, text, 4); });
}

TEST_F(FilesRead, WhatIsNoFileIsRefusedAtOnce)
{
    const std::string pipe = folder_.at("pipe"), none = folder_.at("none");
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    expect_error(YOKE_E_IO, {kLoadCall, "pipe", "not a regular file"},
                 [&] { ReadFile(kLoadCall, pipe); });
    expect_error(YOKE_E_IO, {kLoadCall, "/dev/zero", "not a regular file"},
                 [&] { ReadFile(kLoadCall, "/dev/zero"); });
    expect_error(YOKE_E_IO, {kLoadCall, folder_.path().c_str(), "Is a directory"},
                 [&] { ReadFile(kLoadCall, folder_.path()); });
    expect_error(YOKE_E_IO, {kLoadCall, "none", "No such file"},
                 [&] { ReadFile(kLoadCall, none); });
}

TEST_F(FilesRead, AMappedFileStaysWhatItWas)
{
    const std::string path = put("the former");
    const auto mapped = ReadFile(kLoadCall, path).map();
    EXPECT_EQ(mapped->size(), 10u);
    // Saves over the file, and from the mapped memory itself. Writes to this memory stay private.
    mapped->data()[0] = 'T';
    EXPECT_EQ(content_of(path), "the former");
    {
        NewFile file(kLoadCall, path);
        file.write(mapped->data(), mapped->size());
        file.write(mapped->data(), mapped->size());
        file.commit();
    }
    EXPECT_EQ(content_of(path), "The formerThe former");
    EXPECT_EQ(std::string(mapped->data(), 10), "The former");
    save("");
    EXPECT_EQ(std::string(mapped->data(), 10), "The former");
    const auto empty = ReadFile(kLoadCall, path).map();
    EXPECT_EQ(empty->data(), nullptr);
    EXPECT_EQ(empty->size(), 0u);
}

// ---- The lock ---------------------------------------------------------------------------------------------------

TEST_F(FilesRead, ASecondWriterIsToldOfTheFirst)
{
    const std::string pid = format("process %d (this one)", getpid());
    for (int i = 0; i < 2; ++i) {
        const FolderLock lock(kLoadCall, folder_.path());
        expect_error(YOKE_E_STATE, {kLoadCall, pid.c_str(), folder_.path().c_str()},
                     [&] { FolderLock(kLoadCall, folder_.path()); });
        // A refused lock must not release the first lock.
        EXPECT_THROW(FolderLock(kLoadCall, folder_.path()), Error);
    }
    EXPECT_THROW(FolderLock(kLoadCall, folder_.at("nowhere")), Error);
}

TEST_F(FilesRead, AnotherProcessHoldsTheLockUntilItEnds)
{
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        const FolderLock lock(kLoadCall, folder_.path());
        if (write(ready[1], "!", 1) != 1) _exit(1);
        for (;;) pause();
    }
    char sign = 0;
    EXPECT_EQ(read(ready[0], &sign, 1), 1);
    const std::string pid = format("process %d already writes", child);
    expect_error(YOKE_E_STATE, {kLoadCall, pid.c_str()},
                 [&] { FolderLock(kLoadCall, folder_.path()); });
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    FolderLock(kLoadCall, folder_.path());
    for (const int end : ready) close(end);
}

// A child that lives on keeps the file of the lock open.
TEST_F(FilesRead, ALockIsGivenBackThoughAChildLives)
{
    auto lock = std::make_unique<FolderLock>(kLoadCall, folder_.path());
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        for (;;) pause();
    }
    EXPECT_THROW(FolderLock(kLoadCall, folder_.path()), Error);
    lock.reset();
    FolderLock(kLoadCall, folder_.path());
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace yoke::test
