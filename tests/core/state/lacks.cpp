// Calls that a file system does not support: states are saved without them, and a single warning says so. See
// core/state/lacks.cpp.
#include "core/state/lacks.h"
#include "core/base/error.h"
#include "core/state/folder_lock.h"
#include "core/state/load.h"
#include "core/state/new_file.h"
#include "tests/core/expect_error.h"
#include "tests/core/heard.h"
#include "tests/core/state/crash_run.h"
#include "tests/core/state/file_seam.h"
#include "tests/core/state/manager_states.h"

#include <cerrno>
#include <cstring>

namespace yoke::test {
namespace {

struct Call {
    const char *entry;
    bool is_folder;  // for fsync
    std::vector<int> lacking;
    const char *promise;
};
const Call kCalls[] = {
    {"fsync", true, {EINVAL, ENOSYS, EOPNOTSUPP, EBADF}, "a saved state may be lost"},
    {"fsync", false, {EINVAL, ENOSYS, EOPNOTSUPP}, "the data of a saved state may be lost"},
    {"flock", false, {ENOSYS, EOPNOTSUPP, ENOLCK, EINVAL}, "two processes may save"},
    {"chmod", false, {EPERM, ENOSYS, EOPNOTSUPP, EINVAL}, "other permissions"},
};

// Saves a file over a former file, and steps, with a step saved anew.
void save_all(const TemporaryFolder &folder)
{
    for (const int64_t version : {1, 2})
        save_state(folder.at("file"), *state_of_version(version), {}, kSave)->wait(-1);
    const Ref<CheckpointManager> manager = manager_of(folder.at("run"), 2);
    for (const int64_t step : {1, 2, 3, 2}) save_version(*manager, step, step + 1);
    EXPECT_EQ(load_version(*manager), 3);
    EXPECT_EQ(version_of(*load_state(folder.at("file"), {}, kLoad)), 2);
    EXPECT_TRUE(folder.leftovers().empty());
}

auto failing(const Seam &seam, const Call &call, int fault)
{
    return [&seam, &call, fault](const std::string &entry) {
        return entry == call.entry && (entry != "fsync" || seam.is_folder == call.is_folder) ? fault
                                                                                             : 0;
    };
}

TEST(Lacks, StatesAreSavedWithoutACallAndOneWarningSaysSo)
{
    for (const Call &call : kCalls)
        for (const int fault : call.lacking) {
            SCOPED_TRACE(format("%s: %s", call.entry, strerror(fault)));
            forget_lacks();
            const TemporaryFolder folder;
            Seam seam;
            seam.fate = failing(seam, call, fault);
            const Heard heard;
            save_all(folder);
            save_all(folder);
            ASSERT_EQ(heard.warnings.size(), 1u);
            EXPECT_NE(heard.warnings[0].find(call.promise), std::string::npos) << heard.warnings[0];
            EXPECT_NE(heard.warnings[0].find(strerror(fault)), std::string::npos);
            EXPECT_NE(heard.warnings[0].find(folder.path()), std::string::npos);
        }
    forget_lacks();
}

TEST(Lacks, WhatFailsOtherwiseIsAnError)
{
    for (const Call &call : kCalls)
        for (const int fault : {EIO, ENOSPC, EDQUOT, EROFS}) {
            SCOPED_TRACE(format("%s: %s", call.entry, strerror(fault)));
            const TemporaryFolder folder;
            Seam seam;
            seam.fate = failing(seam, call, fault);
            expect_error(YOKE_E_IO, {strerror(fault)}, [&] { save_all(folder); });
        }
}

// Another host's lock on CIFS.
TEST(Lacks, ALockThatAnotherOneHasIsNoneThatLacks)
{
    for (const int fault : {EWOULDBLOCK, EACCES}) {
        const TemporaryFolder folder;
        Seam seam;
        seam.fate = [&](const std::string &entry) { return entry == "flock" ? fault : 0; };
        expect_error(YOKE_E_STATE, {"writes to"}, [&] { FolderLock(kSave, folder.path()); });
    }
}

// Folders that are not renamed: neither with exchange nor without.
TEST(Lacks, StepsMoveFileByFileWhereFoldersAreNotRenamed)
{
    for (const int fault : {EXDEV, EPERM, EMFILE, ENOSYS, EOPNOTSUPP}) {
        SCOPED_TRACE(strerror(fault));
        forget_lacks();
        const TemporaryFolder folder;
        Seam seam;
        seam.fate = [&](const std::string &entry) {
            return entry == "exchange" || (entry == "rename" && seam.is_folder) ? fault : 0;
        };
        const Heard heard;
        const Ref<CheckpointManager> manager = manager_of(folder.path(), 2);
        for (const int64_t step : {1, 2, 3, 2}) save_version(*manager, step, step + 1);
        EXPECT_EQ(load_version(*manager), 3);
        EXPECT_EQ(manager->steps(kLoad), (std::vector<int64_t>{3, 2}));
        EXPECT_EQ(folder.names(), (std::vector<std::string>{".lock", "step-2", "step-3"}));
        ASSERT_EQ(heard.warnings.size(), 1u);
        EXPECT_NE(heard.warnings[0].find("a step may be incomplete"), std::string::npos);
    }
    forget_lacks();
}

// The promise after a crash stays as before, because no call here makes a state durable.
TEST(Lacks, PermissionsThatCannotBeKeptChangeNothingAfterACrash)
{
    class VersionSaver : public CrashRun {
    public:
        void save(int version)
        {
            const std::string content = std::to_string(version);
            doing("state", content, [&] {
                NewFile file(kSave, folder().at("state"));
                file.write(content.data(), content.size());
                file.commit();
            });
        }
    } saver;
    saver.lacking = {{"chmod", EPERM}, {"exchange", EINVAL}};
    for (const int version : {1, 2, 3}) saver.save(version);
    const CrashStates states = crash_states(saver.events());
    EXPECT_EQ(states.wrong, "");
    EXPECT_GT(states.seen.size(), 10u);
    forget_lacks();
}

}  // namespace
}  // namespace yoke::test
