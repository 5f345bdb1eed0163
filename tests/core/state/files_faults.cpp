// Each call of the system fails once, and files of state stay whole: core/state/new_file.cpp, new_folder.cpp,
// temporary.cpp.
#include "core/state/folder_lock.h"
#include "core/state/new_folder.h"
#include "core/state/read_file.h"
#include "tests/core/state/file_seam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

namespace yoke::test {
namespace {

struct Scenario {
    using Do = std::function<void(const TemporaryFolder &)>;

    const char *name;
    Do prepare, act;
    Do again;  // continues after the failure; `act` if empty
    bool can_exchange = true;
};

void put(const std::string &path, const std::string &content)
{
    std::ofstream(path, std::ios::binary) << content;
}

void save_file(const std::string &path, const std::string &content)
{
    NewFile file(kSaveCall, path);
    file.write(content.data(), content.size());
    EXPECT_EQ(file.bytes(), content.size());
    file.commit();
}

void save_step(const TemporaryFolder &folder, const std::string &content)
{
    NewFolder step(kSaveCall, folder.path(), "step-1", folder.names());
    FileWriter &state = step.create("state");
    state.write(content.data(), content.size());
    state.finish();
    step.create("manifest").write("1", 1);
    step.commit();
}

void read_both_ways(const TemporaryFolder &folder)
{
    const ReadFile file(kSaveCall, folder.at("state"));
    std::string text(file.size(), ' ');
    file.read(0, text.data(), text.size());
    EXPECT_EQ(text, "the former");
    const auto map = file.map();
    EXPECT_TRUE(!map || std::string(map->data(), file.size()) == text);
}

void clear_up(const TemporaryFolder &folder)
{
    if (std::filesystem::exists(folder.at("step-1"))) remove_folder(kSaveCall, folder.at("step-1"));
    NewFolder(kSaveCall, folder.path(), "step-2", folder.names());
}

const Scenario::Do kNothing = [](const TemporaryFolder &) {};
const Scenario::Do kFormerFile = [](const TemporaryFolder &folder) {
    put(folder.at("state"), "the former");
};
const Scenario::Do kFormerStep = [](const TemporaryFolder &folder) {
    save_step(folder, "the former");
};
const Scenario::Do kSaveFile = [](const TemporaryFolder &folder) {
    save_file(folder.at("state"), "the new");
};
const Scenario::Do kSaveStep = [](const TemporaryFolder &folder) { save_step(folder, "the new"); };

const Scenario kScenarios[] = {
    {"a new file", kNothing, kSaveFile, {}},
    {"a file in place of another, behind a link and beside a leftover",
     [](const TemporaryFolder &folder) {
         put(folder.at("state"), "the former");
         put(folder.at(".state.yoke-99999999-0123456789abcdef.tmp"), "a part");
         std::filesystem::create_symlink("state", folder.at("link"));
     },
     [](const TemporaryFolder &folder) { save_file(folder.at("link"), "the new"); },
     {}},
    {"a new folder", kNothing, kSaveStep, {}},
    {"a folder in place of another", kFormerStep, kSaveStep, {}},
    {"a folder in place of another, without exchange", kFormerStep, kSaveStep, {}, false},
    {"a folder beside a leftover",
     [](const TemporaryFolder &folder) {
         const std::string left = folder.at(".step-7.yoke-99999999-0123456789abcdef.tmp");
         std::filesystem::create_directory(left);
         put(left + "/state", "a part");
     },
     kSaveStep,
     {}},
    {"a folder removed", kFormerStep,
     [](const TemporaryFolder &folder) { remove_folder(kSaveCall, folder.at("step-1")); },
     clear_up},
    {"a file read", kFormerFile, read_both_ways, {}},
    {"folders made",
     kNothing,
     [](const TemporaryFolder &folder) { make_folders(kSaveCall, folder.at("a/b")); },
     {}},
    {"folders found",
     kFormerStep,
     [](const TemporaryFolder &folder) {
         EXPECT_EQ(find_folders(list_folder(kSaveCall, folder.path())).at(0).name, "step-1");
         EXPECT_TRUE(is_folder(kSaveCall, folder.at("step-1")));
     },
     {}},
    {"a folder locked",
     kNothing,
     [](const TemporaryFolder &folder) { FolderLock(kSaveCall, folder.path()); },
     {}},
};

// Returns all paths in the folder with their contents.
std::string found_in(const TemporaryFolder &folder)
{
    std::vector<std::string> lines;
    for (const auto &entry : std::filesystem::recursive_directory_iterator(folder.path())) {
        const std::string path = entry.path().string().substr(folder.path().size() + 1);
        if (path.find(".yoke-") != std::string::npos || path == ".lock" || path == "a") continue;
        lines.push_back(path + ": " +
                        (entry.is_regular_file() ? content_of(entry.path()) : "a folder") + "\n");
    }
    std::ranges::sort(lines);
    std::string all;
    for (const std::string &line : lines) all += line;
    return all;
}

// Content before and after an undisturbed action, and the number of its calls.
struct Course {
    std::string before, after;
    int calls = 0;
};

Course undisturbed(const Scenario &scenario)
{
    const TemporaryFolder folder;
    Course course;
    scenario.prepare(folder);
    course.before = found_in(folder);
    {
        Seam seam;
        seam.fate = [&](const std::string &entry) {
            ++course.calls;
            return entry == "exchange" && !scenario.can_exchange ? EINVAL : 0;
        };
        scenario.act(folder);
    }
    course.after = found_in(folder);
    EXPECT_TRUE(folder.leftovers().empty());
    return course;
}

// Acts with a single failing call; returns whether the action raised.
bool raises(const Scenario &scenario, const TemporaryFolder &folder, int failing, int fault,
            std::string *failed)
{
    int calls = 0;
    Seam seam;
    seam.fate = [&](const std::string &entry) {
        if (++calls == failing) return *failed = entry, fault;
        return entry == "exchange" && !scenario.can_exchange ? EINVAL : 0;
    };
    try {
        scenario.act(folder);
    } catch (const Error &error) {
        EXPECT_STREQ(status_name(error.status()), "YOKE_E_IO") << error.what();
        EXPECT_EQ(error.native_code(), fault == kShort ? ENOSPC : fault) << error.what();
        const std::string text = std::generic_category().message(fault), what = error.what();
        EXPECT_TRUE(what.starts_with(kSaveCall)) << what;
        EXPECT_NE(what.find(folder.path()), std::string::npos) << what;
        EXPECT_TRUE(fault == kShort || what.find(text) != std::string::npos) << what;
        return true;
    }
    return false;
}

// `raised` is the call whose failure was reported, "" without a failure.
void expect_old_or_new(const Scenario &scenario, const Course &course,
                       const TemporaryFolder &folder, const std::vector<std::string> &leftovers,
                       const std::string &raised)
{
    const std::string found = found_in(folder);
    if (found != course.after) {
        EXPECT_NE(raised, "");
        EXPECT_EQ(found, course.before);
        EXPECT_TRUE(std::ranges::includes(leftovers, folder.leftovers()));
    } else if (!raised.empty() && course.before != course.after) {
        // The new content stands, and the action raised: after a crash the former content may be back.
        EXPECT_TRUE(raised == "fsync" || scenario.again) << raised;
    }
}

void fail_once(const Scenario &scenario, const Course &course, int failing, int fault)
{
    const TemporaryFolder folder;
    scenario.prepare(folder);
    const std::vector<std::string> leftovers = folder.leftovers();
    const size_t files = open_files();
    std::string failed;
    const bool has_raised = raises(scenario, folder, failing, fault, &failed);
    SCOPED_TRACE(format("%s: call %d, %s: %s", scenario.name, failing, failed.c_str(),
                        fault == kShort ? "short" : strerror(fault)));
    EXPECT_EQ(open_files(), files);
    EXPECT_FALSE(has_raised && (fault == EINTR || failed == "mmap"));
    expect_old_or_new(scenario, course, folder, leftovers, has_raised ? failed : "");
    (scenario.again ? scenario.again : scenario.act)(folder);
    EXPECT_TRUE(scenario.again || found_in(folder) == course.after) << found_in(folder);
    EXPECT_TRUE(course.before == course.after || folder.leftovers().empty());
}

TEST(FilesFaults, EachCallFailsOnce)
{
    int failures = 0;
    for (const Scenario &scenario : kScenarios) {
        const Course course = undisturbed(scenario);
        for (int call = 1; call <= course.calls; ++call)
            for (const int fault : {ENOSPC, EIO, EINTR, kShort}) {
                fail_once(scenario, course, call, fault);
                ++failures;
            }
    }
    EXPECT_GT(failures, 400);
}

// Writes more than the disk gets at once; returns the calls on the data.
std::vector<std::string> save_large(const std::string &path, const std::string &content, int fault)
{
    std::vector<std::string> calls;
    Seam seam;
    seam.syncs = false;
    seam.fate = [&](const std::string &entry) {
        const bool is_start = entry == "start_sync";
        if (is_start || entry == "write") calls.push_back(entry);
        return is_start ? fault : 0;
    };
    save_file(path, content);
    return calls;
}

TEST(FilesFaults, TheDiskGetsAPartWhileTheNextIsWritten)
{
    const TemporaryFolder folder;
    const std::string content(2 * FileWriter::kWriteBehind + 5, 'n');
    const std::vector<std::string> wanted = {"write", "start_sync", "write", "start_sync", "write"};
    // Errors of a system without this call.
    for (const int fault : {0, ENOSYS, EINVAL, EPERM, ESPIPE}) {
        put(folder.at("state"), "the former");
        EXPECT_EQ(save_large(folder.at("state"), content, fault), wanted) << strerror(fault);
        EXPECT_TRUE(content_of(folder.at("state")) == content) << strerror(fault);
    }
    for (const int fault : {EIO, ENOSPC, EDQUOT}) {
        put(folder.at("state"), "the former");
        EXPECT_THROW(save_large(folder.at("state"), content, fault), Error) << strerror(fault);
        EXPECT_EQ(content_of(folder.at("state")), "the former") << strerror(fault);
        EXPECT_TRUE(folder.leftovers().empty());
    }
}

// A disk that is full after a part of the data.
TEST(FilesFaults, AFullDiskLeavesTheFormerFile)
{
    const TemporaryFolder folder;
    put(folder.at("state"), "the former");
    {
        Seam seam;
        bool is_full = false;
        seam.fate = [&](const std::string &entry) {
            return entry != "write" ? 0 : std::exchange(is_full, true) ? ENOSPC : kShort;
        };
        NewFile file(kSaveCall, folder.at("state"));
        EXPECT_THROW(file.write("the new", 7), Error);
        // A second try does not write the lost data.
        is_full = false;
        for (const int i : {0, 1}) try {
                if (i == 0) file.write("the new", 7);
                file.commit();
                ADD_FAILURE() << "a lost file was committed";
            } catch (const Error &error) {
                EXPECT_STREQ(status_name(error.status()), "YOKE_E_STATE");
            }
    }
    EXPECT_EQ(folder.names(), std::vector<std::string>{"state"});
    EXPECT_EQ(content_of(folder.at("state")), "the former");
}

// The system reports unwritten pages only once, and a second fsync succeeds.
TEST(FilesFaults, AFailedSyncIsNotTriedAgain)
{
    const TemporaryFolder folder;
    Seam seam;
    bool has_failed = false;
    seam.fate = [&](const std::string &entry) {
        return entry == "fsync" && !std::exchange(has_failed, true) ? EIO : 0;
    };
    NewFolder step(kSaveCall, folder.path(), "step-1", folder.names());
    step.create("state").write("1", 1);
    EXPECT_THROW(step.commit(), Error);
    EXPECT_TRUE(has_failed);
    EXPECT_THROW(step.commit(), Error);
    EXPECT_FALSE(std::filesystem::exists(folder.at("step-1")));
}

}  // namespace
}  // namespace yoke::test
