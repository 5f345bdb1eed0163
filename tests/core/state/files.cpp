// Files and folders of state: core/state/new_file.cpp, new_folder.cpp, temporary.cpp.
#include "core/state/folder_lock.h"
#include "core/state/new_folder.h"
#include "core/state/read_file.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"
#include "tests/core/state/file_seam.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

namespace yoke::test {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class Files : public testing::Test {
protected:
    std::string at(const std::string &name) const { return folder_.at(name); }
    void put(const std::string &name, const std::string &content) const
    {
        std::ofstream(at(name), std::ios::binary) << content;
    }
    static void save(const std::string &path, const std::string &content)
    {
        NewFile file(kSaveCall, path);
        file.write(content.data(), content.size());
        file.commit();
    }
    // Checks that a save fails at once, with the path and the system's error number, and leaves no file.
    void refuses(const std::string &path, int error, const char *why) const
    {
        const Names before = folder_.names();
        try {
            save(path, "new");
            ADD_FAILURE() << path << " was written";
        } catch (const Error &raised) {
            EXPECT_EQ(raised.native_code(), error) << raised.what();
        }
        expect_error(YOKE_E_IO, {kSaveCall, path.c_str(), why}, [&] { save(path, "new"); });
        EXPECT_EQ(folder_.names(), before);
    }
    void save_step(const std::string &name, const std::string &content) const
    {
        NewFolder step(kSaveCall, folder_.path(), name, folder_.names());
        step.create("state").write(content.data(), content.size());
        step.commit();
    }

    TemporaryFolder folder_;
};

// Returns the number of a dead process.
pid_t dead_process()
{
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
    return child;
}

// ---- Target of a path -------------------------------------------------------------------------------------------

TEST_F(Files, AFileComesInOneStep)
{
    put("state", "old");
    NewFile file(kSaveCall, at("state"));
    file.write("ne", 2);
    file.write("w", 1);
    EXPECT_EQ(file.bytes(), 3u);
    EXPECT_EQ(content_of(at("state")), "old");
    EXPECT_EQ(folder_.leftovers().size(), 1u);
    file.commit();
    EXPECT_EQ(content_of(at("state")), "new");
    EXPECT_EQ(folder_.names(), Names{"state"});
}

TEST_F(Files, OneThatIsNotCommittedLeavesNothing)
{
    put("state", "old");
    {
        NewFile file(kSaveCall, at("state"));
        file.write("new", 3);
    }
    EXPECT_EQ(content_of(at("state")), "old");
    EXPECT_EQ(folder_.names(), Names{"state"});
}

TEST_F(Files, ALinkStaysAndItsFileIsReplaced)
{
    fs::create_directory(at("data"));
    put("data/state", "old");
    fs::create_symlink("data/state", at("relative"));
    fs::create_symlink(at("relative"), at("absolute"));
    fs::create_symlink("../data/../relative", at("data/back"));
    for (const char *link : {"relative", "absolute", "data/back"}) {
        save(at(link), link);
        EXPECT_TRUE(fs::is_symlink(at(link)));
        EXPECT_EQ(content_of(at("data/state")), link);
    }
    EXPECT_EQ(folder_.names(), (Names{"absolute", "data", "relative"}));
}

TEST_F(Files, ALinkToNothingMakesWhatItNames)
{
    fs::create_directory(at("data"));
    fs::create_symlink("data/state", at("link"));
    save(at("link"), "new");
    EXPECT_TRUE(fs::is_symlink(at("link")));
    EXPECT_EQ(content_of(at("data/state")), "new");

    fs::create_symlink("nowhere/state", at("astray"));
    expect_error(YOKE_E_IO, {"no folder", "nowhere"}, [&] { save(at("astray"), "new"); });
    EXPECT_EQ(folder_.names(), (Names{"astray", "data", "link"}));
}

TEST_F(Files, WhatIsNoFileIsRefused)
{
    fs::create_directory(at("folder"));
    fs::create_symlink("folder", at("to_folder"));
    fs::create_symlink("loop", at("loop"));
    fs::create_symlink("even", at("odd"));
    fs::create_symlink("odd", at("even"));
    ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
    fs::create_symlink("pipe", at("to_pipe"));
    put("file", "");
    for (const char *name : {"folder", "to_folder", "folder/", "folder/."})
        refuses(at(name), EISDIR, "Is a directory");
    for (const char *name : {"loop", "odd"}) refuses(at(name), ELOOP, "symbolic links");
    for (const char *name : {"pipe", "to_pipe"}) refuses(at(name), EINVAL, "not a regular file");
    refuses("/dev/null", EINVAL, "not a regular file");
    refuses("/dev/full", EINVAL, "not a regular file");
    refuses(at("file/state"), ENOTDIR, "Not a directory");
    refuses(at("new/"), EISDIR, "Is a directory");
    refuses(at("none/state"), ENOENT, "no folder");
    refuses("", ENOENT, "No such file");
}

TEST_F(Files, PermissionsAreKept)
{
    const mode_t mask = umask(027);
    save(at("new"), "1");
    put("private", "old");
    fs::permissions(at("private"), fs::perms(0600));
    put("open", "old");
    fs::permissions(at("open"), fs::perms(0666));
    for (const char *name : {"private", "open"}) save(at(name), "new");
    umask(mask);
    EXPECT_EQ(fs::status(at("new")).permissions(), fs::perms(0640));
    EXPECT_EQ(fs::status(at("private")).permissions(), fs::perms(0600));
    EXPECT_EQ(fs::status(at("open")).permissions(), fs::perms(0666));
}

TEST_F(Files, AReadOnlyFolderIsAnError)
{
    put("state", "old");
    fs::permissions(folder_.path(), fs::perms(0555));
    EXPECT_TRUE(passes_in_child([&] {
        constexpr uid_t kNobody = 65534;
        ASSERT_TRUE(geteuid() != 0 || setuid(kNobody) == 0);  // root writes everywhere
        refuses(at("state"), EACCES, "Permission denied");
        expect_error(YOKE_E_IO, {kSaveCall, "Permission denied"},
                     [&] { save_step("step-1", "new"); });
        expect_error(YOKE_E_IO, {kSaveCall, "Permission denied"},
                     [&] { FolderLock(kSaveCall, folder_.path()); });
    }));
    fs::permissions(folder_.path(), fs::perms(0700));
    EXPECT_EQ(content_of(at("state")), "old");
}

// No seam plays this: the system itself writes a part, and then refuses the rest.
TEST_F(Files, AFileThatMayNotGrowIsAnErrorOfTheSystem)
{
    put("state", "old");
    EXPECT_TRUE(passes_in_child([&] {
        signal(SIGXFSZ, SIG_IGN);
        const rlimit limit = {1000, 1000};
        setrlimit(RLIMIT_FSIZE, &limit);
        const std::string large(3000, 'x');
        expect_error(YOKE_E_IO, {kSaveCall, "write", "too large"},
                     [&] { save(at("state"), large); });
    }));
    EXPECT_EQ(content_of(at("state")), "old");
    EXPECT_EQ(folder_.names(), Names{"state"});
}

TEST_F(Files, ALongNameHasATemporaryToo)
{
    std::string name;
    while (name.size() < 252) name += "ü€";
    save(at(name), "old");
    save(at(name), "new");
    EXPECT_EQ(content_of(at(name)), "new");
    EXPECT_EQ(folder_.names(), Names{name});
}

TEST_F(Files, ARunThatChangesItsFolderMeanwhileWritesWhereItBegan)
{
    EXPECT_TRUE(passes_in_child([&] {
        ASSERT_EQ(chdir(folder_.path().c_str()), 0);
        NewFile file(kSaveCall, "state");
        NewFolder step(kSaveCall, ".", "step-1", {});
        ASSERT_EQ(chdir("/"), 0);
        step.create("state");
        file.commit();
        step.commit();
    }));
    EXPECT_EQ(folder_.names(), (Names{"state", "step-1"}));
}

// ---- Leftovers --------------------------------------------------------------------------------------------------

TEST_F(Files, LeftoversOfTheDeadGoAndThoseOfTheLivingStay)
{
    const auto left = [](const char *target, pid_t process) {
        return format(".%s.yoke-%d-0123456789abcdef.tmp", target, process);
    };
    const pid_t dead = dead_process();
    const Names stay = {left("state", getppid()), left("other", dead), ".state.yoke-1-2.tmp",
                        ".state.yoke-x-0123456789abcdef.tmp", left("state", -dead)};
    for (const std::string &name : stay) put(name, "a part");
    put(left("state", dead), "a part");
    // An earlier process of another container had the number of this process.
    put(left("state", getpid()), "a part");
    NewFile mine(kSaveCall, at("state"));
    remove_leftovers(folder_.path(), "state");
    EXPECT_EQ(folder_.names().size(), stay.size() + 1);
    save(at("state"), "new");
    mine.write("mine", 4);
    mine.commit();
    EXPECT_EQ(content_of(at("state")), "mine");
    EXPECT_EQ(folder_.names().size(), stay.size() + 1);
    for (const std::string &name : stay) EXPECT_TRUE(fs::exists(at(name))) << name;
    remove_leftovers(folder_.path(), "");
    EXPECT_FALSE(fs::exists(at(left("other", dead))));
    remove_leftovers(at("nowhere"), "");
}

TEST_F(Files, AForkedChildLeavesItsParentsFilesAlone)
{
    auto file = std::make_unique<NewFile>(kSaveCall, at("state"));
    auto step = std::make_unique<NewFolder>(kSaveCall, folder_.path(), "step-1", folder_.names());
    auto lock = std::make_unique<FolderLock>(kSaveCall, folder_.path());
    EXPECT_TRUE(passes_in_child([&] {
        file.reset();
        step.reset();
        lock.reset();
        EXPECT_EQ(folder_.leftovers().size(), 2u);
    }));
    EXPECT_THROW(FolderLock(kSaveCall, folder_.path()), Error);
    file->commit();
    step->commit();
    EXPECT_EQ(folder_.names(), (Names{".lock", "state", "step-1"}));
}

// ---- Folders ----------------------------------------------------------------------------------------------------

TEST_F(Files, AFolderComesInOneStep)
{
    for (const char *content : {"old", "new"}) {
        NewFolder step(kSaveCall, folder_.path(), "step-1", folder_.names());
        FileWriter &state = step.create("state");
        state.write(content, 3);
        EXPECT_EQ(state.bytes(), 3u);
        state.finish();
        expect_error(YOKE_E_STATE, {kSaveCall, "state", "finished"}, [&] { state.write("x", 1); });
        step.create("empty");
        expect_error(YOKE_E_IO, {kSaveCall, "state", "exists"}, [&] { step.create("state"); });
        EXPECT_EQ(find_folders(list_folder(kSaveCall, folder_.path())).size(),
                  content == std::string("new") ? 1 : 0);
        step.commit();
        EXPECT_EQ(content_of(at("step-1/state")), content);
        EXPECT_EQ(folder_.names(), Names{"step-1"});
    }
    NewFolder(kSaveCall, folder_.path(), "step-1", folder_.names()).create("state");
    EXPECT_EQ(content_of(at("step-1/state")), "new");
    EXPECT_EQ(folder_.names(), Names{"step-1"});
}

TEST_F(Files, AFolderTakesTheNameOfNothingElse)
{
    put("step-1", "a file");
    fs::create_symlink("nowhere", at("step-2"));
    for (const char *name : {"step-1", "step-2"})
        expect_error(YOKE_E_IO, {kSaveCall, name, "Not a directory"},
                     [&] { save_step(name, "new"); });
    for (const char *name : {"", ".", "..", "a/b", ".hidden"})
        expect_error(YOKE_E_VALUE, {kSaveCall, name}, [&] { save_step(name, "new"); });
    EXPECT_EQ(folder_.names(), (Names{"step-1", "step-2"}));
    EXPECT_THROW(NewFolder(kSaveCall, at("nowhere"), "step-1", {}), Error);
}

TEST_F(Files, ARemovedFolderTakesAllInItAndNothingElse)
{
    put("kept", "1");
    save_step("step-1", "new");
    fs::create_directories(at("step-1/inner/most"));
    put("step-1/inner/file", "");
    fs::create_directory_symlink(folder_.path(), at("step-1/inner/out"));
    remove_folder(kSaveCall, at("step-1"));
    EXPECT_EQ(folder_.names(), Names{"kept"});
    expect_error(YOKE_E_IO, {kSaveCall, "step-1", "No such"},
                 [&] { remove_folder(kSaveCall, at("step-1")); });
}

TEST_F(Files, AFolderThatWaitsForANewOneIsFound)
{
    save_step("step-1", "old");
    save_step("step-2", "old");
    fs::rename(at("step-1"), at(".step-1.yoke-old"));
    const auto found = find_folders(list_folder(kSaveCall, folder_.path()));
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].name, "step-1");
    EXPECT_EQ(found[0].place, ".step-1.yoke-old");
    EXPECT_EQ(found[1].place, "step-2");
    save_step("step-1", "new");
    EXPECT_EQ(folder_.names(), (Names{"step-1", "step-2"}));
    fs::rename(at("step-1"), at(".step-1.yoke-old"));
    remove_folder(kSaveCall, at("step-1"));
    EXPECT_EQ(folder_.names(), Names{"step-2"});
}

TEST_F(Files, FoldersAreMadeWithThoseAbove)
{
    for (const char *path : {"a/b//c/", "a/b/c", "a"}) make_folders(kSaveCall, at(path));
    EXPECT_TRUE(fs::is_directory(at("a/b/c")));
    put("file", "");
    for (const char *path : {"file", "file/a"})
        expect_error(YOKE_E_IO, {kSaveCall, "file", "Not a directory"},
                     [&] { make_folders(kSaveCall, at(path)); });
    expect_error(YOKE_E_IO, {kSaveCall}, [&] { make_folders(kSaveCall, ""); });
}

}  // namespace
}  // namespace yoke::test
