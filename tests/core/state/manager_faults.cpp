// Each call of the system fails once while a manager saves or loads: core/state/manager*.cpp.
#include "tests/core/expect_error.h"
#include "tests/core/heard.h"
#include "tests/core/state/file_seam.h"
#include "tests/core/state/manager_states.h"

#include "core/base/error.h"

#include <cerrno>
#include <cstring>

namespace yoke::test {
namespace {

// Action of a manager after versions 1 and 2 were saved, by this manager or by another process.
struct ManagerScenario {
    const char *name;
    int64_t keep;
    bool is_new;
    std::function<void(CheckpointManager &)> act;
    int64_t before, after;  // versions of the newest
};

const ManagerScenario kManagerScenarios[] = {
    {"a further step", 3, false, [](CheckpointManager &manager) { save_version(manager, 3, 3); }, 2,
     3},
    {"the first save of a run that goes on", 3, true,
     [](CheckpointManager &manager) { save_version(manager, 3, 3); }, 2, 3},
    {"a step in place of another", 3, false,
     [](CheckpointManager &manager) { save_version(manager, 1, 3); }, 2, 3},
    {"one step in place of all", 1, true,
     [](CheckpointManager &manager) { save_version(manager, 3, 3); }, 2, 3},
    {"a load of the newest", 3, true,
     [](CheckpointManager &manager) { EXPECT_EQ(load_version(manager), 2); }, 2, 2},
    {"a load by number", 3, true,
     [](CheckpointManager &manager) { EXPECT_EQ(load_version(manager, {.step = 2}), 2); }, 2, 2},
};

struct ManagerCourse {
    int failing = 0, fault = 0, calls = 0;
    std::string failed;
};

// Acts with a single failing call; returns the error, if there is an error.
std::unique_ptr<Error> act(const ManagerScenario &scenario, CheckpointManager &manager,
                           ManagerCourse &course, Seam &seam)
{
    std::unique_ptr<Error> told;
    seam.fate = [&](const std::string &entry) {
        if (++course.calls == course.failing) return course.failed = entry, course.fault;
        return 0;
    };
    try {
        scenario.act(manager);
    } catch (const Error &error) {
        told = std::make_unique<Error>(error);
    }
    seam.fate = nullptr;
    return told;
}

int64_t newest_in(const TemporaryFolder &folder)
{
    return load_version(*manager_of(folder.path()));
}

void expect_told(const Error &error, const ManagerCourse &course, const TemporaryFolder &folder)
{
    const std::string what = error.what();
    EXPECT_STREQ(status_name(error.status()), "YOKE_E_IO") << what;
    EXPECT_EQ(error.native_code(), course.fault == kShort ? ENOSPC : course.fault) << what;
    EXPECT_NE(what.find(folder.path()), std::string::npos) << what;
    EXPECT_TRUE(course.fault != EINTR && course.failed != "mmap") << course.failed << what;
}

// Checks that a failed action leaves neither leftovers nor a worse state than before.
void fail_once(const ManagerScenario &scenario, ManagerCourse &course)
{
    const TemporaryFolder folder;
    Seam seam;
    seam.syncs = false;
    const Ref<CheckpointManager> manager = manager_of(folder.path(), scenario.keep);
    {
        const Ref<CheckpointManager> first = manager_of(folder.path());
        save_version(*first, 1, 1);
        if (scenario.is_new) save_version(*first, 2, 2);
    }
    if (!scenario.is_new) save_version(*manager, 2, 2);
    const size_t files = open_files();
    const std::unique_ptr<Error> error = act(scenario, *manager, course, seam);
    SCOPED_TRACE(format("%s: call %d, %s: %s", scenario.name, course.failing, course.failed.c_str(),
                        course.fault == kShort ? "short" : strerror(course.fault)));
    if (error) expect_told(*error, course, folder);
    // A taken lock stays.
    EXPECT_LE(open_files(), files + (scenario.is_new ? 1 : 0));
    const int64_t newest = newest_in(folder);
    EXPECT_TRUE(newest == scenario.after || (error && newest == scenario.before)) << newest;
    // If a failed action left the new state, a crash may still undo the action. Only fsync fails like this.
    EXPECT_TRUE(!error || newest == scenario.before || course.failed == "fsync");
    save_version(*manager, 9, 9);
    EXPECT_TRUE(folder.leftovers().empty());
    EXPECT_EQ(newest_in(folder), 9);
    EXPECT_LE(manager->steps(kLoad).size(), static_cast<size_t>(scenario.keep));
}

TEST(ManagerFaults, EachCallFailsOnce)
{
    int failures = 0;
    for (const ManagerScenario &scenario : kManagerScenarios)
        for (const int fault : {ENOSPC, EIO, EINTR, kShort})
            for (ManagerCourse course{1, fault, 0, {}};
                 course.failing == 1 || course.calls >= course.failing; ++course.failing) {
                course.calls = 0;
                course.failed.clear();
                fail_once(scenario, course);
                ++failures;
            }
    EXPECT_GT(failures, 500);
    printf("%d failures of calls\n", failures);
}

// Reads the newest step of two while every call from number `from` on fails; returns false if there is no such call.
// No reader may go on from the older step, which is whole as well.
bool refuses_from(int from, int fault, const CheckpointManager &manager, Seam &seam)
{
    int calls = 0;
    const auto meets_fault = [&](const auto &read) {
        calls = 0;
        seam.fate = [&](const std::string &entry) {
            return ++calls >= from && entry != "close" && entry != "munmap" ? fault : 0;
        };
        try {
            const int64_t version = read();
            EXPECT_EQ(version, 2) << strerror(fault) << " from call " << from;
        } catch (const Error &error) {
            EXPECT_STREQ(status_name(error.status()), "YOKE_E_IO") << error.what();
            EXPECT_EQ(error.native_code(), fault) << error.what();
        }
        seam.fate = nullptr;
        return calls >= from;
    };
    const bool is_met = meets_fault([&] { return load_version(manager); });
    meets_fault([&] { return load_version(manager, {.verify = false}); });
    meets_fault([&] { return manager.latest(kLoad).value_or(-1); });
    meets_fault([&] { return manager.steps(kLoad).back(); });
    return is_met;
}

TEST(ManagerFaults, ASystemErrorIsNoDamage)
{
    const TemporaryFolder folder;
    const Ref<CheckpointManager> manager = manager_of(folder.path());
    for (const int64_t version : {1, 2}) save_version(*manager, version, version);
    Seam seam;
    const Heard heard;
    for (const int fault : {EACCES, EPERM, ENOMEM, EMFILE, ENFILE, EIO, ESTALE, ENODEV, ELOOP,
                            ENOTCONN, EOVERFLOW, ETIMEDOUT}) {
        int from = 1;
        while (refuses_from(from, fault, *manager, seam)) ++from;
        EXPECT_GT(from, 10);
    }
    EXPECT_EQ(heard.warnings, std::vector<std::string>());
    EXPECT_EQ(load_version(*manager), 2);
}

TEST(ManagerFaults, AFileThatCannotBeMappedIsRead)
{
    const TemporaryFolder folder;
    const Ref<CheckpointManager> manager = manager_of(folder.path());
    save_version(*manager, 1, 1);
    Seam seam;
    for (const int fault : {ENODEV, ENOMEM, EACCES, EAGAIN, EPERM, EINVAL}) {
        int asked = 0;
        seam.fate = [&](const std::string &entry) { return entry == "mmap" ? ++asked, fault : 0; };
        EXPECT_EQ(load_version(*manager), 1) << strerror(fault);
        EXPECT_EQ(asked, 1);
    }
}

// A step with an unreadable commit number may be the newest. A save beside this step would never be the newest.
TEST(ManagerFaults, NothingIsSavedBesideAStepThatCannotBeRead)
{
    const TemporaryFolder folder;
    for (const int64_t version : {1, 2}) save_version(*manager_of(folder.path()), version, version);
    const Ref<CheckpointManager> manager = manager_of(folder.path());
    {
        Seam seam;
        seam.fate = [](const std::string &entry) { return entry == "pread" ? EIO : 0; };
        expect_error(YOKE_E_IO, {"MANIFEST.json", "Input/output error"},
                     [&] { save_version(*manager, 3, 3); });
    }
    save_version(*manager, 3, 3);
    EXPECT_EQ(load_version(*manager), 3);
}

TEST(ManagerFaults, WhatALoadHasFoundDamagedIsNotTheLatest)
{
    const TemporaryFolder folder;
    const Ref<CheckpointManager> manager = manager_of(folder.path());
    for (const int64_t version : {1, 2}) save_version(*manager, version, version);
    const std::string path = folder.at("step-2/state.safetensors"), whole = content_of(path);
    std::string bytes = whole;
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    put(path, bytes);
    EXPECT_EQ(load_version(*manager), 1);
    EXPECT_EQ(manager->latest(kLoad), 1);
    EXPECT_EQ(manager->steps(kLoad), std::vector<int64_t>{1});
    put(path, whole);
    EXPECT_EQ(load_version(*manager), 2);
    EXPECT_EQ(manager->latest(kLoad), 2);
}

// Removes a folder and its parent before a call of a save; returns false if there is no such call.
bool fails_without_folder(int before, int &told)
{
    SCOPED_TRACE(before);
    const TemporaryFolder folder;
    const Ref<CheckpointManager> manager = manager_of(folder.at("a/run"));
    save_version(*manager, 1, 1);
    int calls = 0;
    Seam seam;
    seam.syncs = false;
    seam.fate = [&](const std::string &) {
        if (++calls == before) std::filesystem::remove_all(folder.at("a"));
        return 0;
    };
    try {
        save_version(*manager, 2, 2);
    } catch (const Error &error) {
        const std::string what = error.what();
        EXPECT_STREQ(status_name(error.status()), "YOKE_E_IO") << what;
        EXPECT_TRUE(what.ends_with("there is no folder " + folder.at("a"))) << what;
        ++told;
    }
    return calls >= before;
}

TEST(ManagerFaults, AFolderThatGoesAmidASaveIsNamed)
{
    int before = 1, told = 0;
    while (fails_without_folder(before, told)) ++before;
    EXPECT_GT(told, 3);
}

}  // namespace
}  // namespace yoke::test
