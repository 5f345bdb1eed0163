// Managers of checkpoints: what is kept, found, passed over and refused: core/state/manager*.cpp, manifest.cpp.
#include "core/state/hash.h"
#include "core/state/manifest.h"
#include "tests/core/expect_error.h"
#include "tests/core/state/file_seam.h"
#include "tests/core/state/manager_states.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace yoke::test {
namespace {

using Steps = std::vector<int64_t>;

TEST(Manager, KeepsTheNewestByTheirCommits)
{
    const TemporaryFolder folder;
    const Ref<CheckpointManager> manager = manager_of(folder.at("a/b"), 2);
    EXPECT_EQ(manager->steps(kLoad), Steps{});
    for (const int64_t step : {10, 20, 5}) save_version(*manager, step, step);
    EXPECT_EQ(manager->steps(kLoad), (Steps{20, 5}));
    EXPECT_EQ(load_version(*manager), 5);
    // A step saved anew is the newest, also for later managers.
    save_version(*manager, 20, 21);
    const Ref<CheckpointManager> later = manager_of(folder.at("a/b"), 2);
    EXPECT_EQ(later->steps(kLoad), (Steps{5, 20}));
    EXPECT_EQ(load_version(*later), 21);
    EXPECT_EQ(load_version(*later, {.step = 5}), 5);
    for (const bool verify : {true, false})
        EXPECT_EQ(load_version(*later, {.step = 20, .verify = verify}), 21);
}

TEST(Manager, ANewOneGoesOnWithTheNumberOfTheCommit)
{
    const TemporaryFolder folder;
    save_version(*manager_of(folder.path()), 9, 1);
    const Ref<CheckpointManager> later = manager_of(folder.path());
    save_version(*later, 3, 2);
    EXPECT_EQ(later->steps(kLoad), (Steps{9, 3}));
    EXPECT_EQ(load_version(*later), 2);
}

TEST(Manager, AManifestSaysWhatIsThere)
{
    const TemporaryFolder folder;
    save_version(*manager_of(folder.path()), 7, 1);
    const std::string path = folder.at("step-7/MANIFEST.json"), text = content_of(path);
    const std::string state = content_of(folder.at("step-7/state.safetensors"));
    const Manifest manifest = read_manifest(text, path.c_str());
    EXPECT_EQ(manifest.step, 7);
    EXPECT_EQ(manifest.commit, 1);
    ASSERT_EQ(manifest.files.size(), 1u);
    EXPECT_EQ(manifest.files[0].bytes, state.size());
    EXPECT_EQ(manifest.files[0].hash, hash_text(state));
    // Hash of no bytes by xxhsum -H2.
    EXPECT_EQ(hash_text(""), "99aa06d3014798d86001c324468d497f");
    EXPECT_EQ(manifest_text(manifest), text);
    EXPECT_EQ(hashed(text), text);
}

TEST(Manager, EveryByteOfAManifestIsHeldToIts)
{
    const TemporaryFolder folder;
    save_version(*manager_of(folder.path()), 7, 1);
    const std::string text = content_of(folder.at("step-7/MANIFEST.json"));
    for (size_t i = 0; i < text.size(); ++i)
        for (const int bit : {0, 3, 6}) {
            std::string other = text;
            other[i] = static_cast<char>(other[i] ^ 1 << bit);
            EXPECT_THROW((void)read_manifest(other, "m"), Error) << i << ": " << other;
            EXPECT_THROW((void)read_manifest(text.substr(0, i), "m"), Error) << i;
        }
}

TEST(Manager, SaysWhatItFoundWhereThereIsNothingToLoad)
{
    const TemporaryFolder folder;
    expect_error(YOKE_E_CHECKPOINT, {"no step in", "none", "check whether a save was made"},
                 [&] { (void)manager_of(folder.at("none"))->load({}, kLoad); });
    EXPECT_EQ(folder.names(), std::vector<std::string>{});
    const Ref<CheckpointManager> manager = manager_of(folder.path());
    save_version(*manager, 4, 1);
    expect_error(YOKE_E_CHECKPOINT, {"there is no step 5 in", "the steps 4"},
                 [&] { (void)manager->load({.step = 5}, kLoad); });
    expect_error(YOKE_E_VALUE, {"'step' is -2"}, [&] { (void)manager->load({.step = -2}, kLoad); });
    expect_error(YOKE_E_VALUE, {"'step' is -1"}, [&] { save_version(*manager, -1, 1); });
    expect_error(YOKE_E_VALUE, {"'keep' is 0"}, [&] { (void)manager_of(folder.path(), 0); });
    expect_error(YOKE_E_VALUE, {"'folder' is empty"}, [] { (void)manager_of(""); });
    put(folder.at("file"), "");
    expect_error(YOKE_E_IO, {"file", "Not a directory"},
                 [&] { (void)manager_of(folder.at("file"))->steps(kLoad); });
    expect_error(YOKE_E_IO, {"file", "Not a directory"},
                 [&] { save_version(*manager_of(folder.at("file")), 1, 1); });
}

TEST(Manager, LeavesAloneWhatItDidNotWrite)
{
    const TemporaryFolder folder;
    for (const char *name : {"step-1", "step-02", "step-x", "step-", "step--3", "runs"})
        std::filesystem::create_directory(folder.at(name));
    put(folder.at("step-1/model.bin"), "of another program");
    std::filesystem::create_directory(folder.at("step-6"));
    put(folder.at("step-6/state.safetensors"), "of another program, too");
    put(folder.at("step-5"), "a file");
    const std::vector<std::string> names = folder.names();
    const Ref<CheckpointManager> manager = manager_of(folder.path(), 1);
    expect_error(YOKE_E_STATE, {"step-1' already exists", "no CheckpointManager wrote"},
                 [&] { save_version(*manager, 1, 1); });
    expect_error(YOKE_E_STATE, {"step-6' already exists", "no CheckpointManager wrote"},
                 [&] { save_version(*manager, 6, 1); });
    EXPECT_EQ(manager->steps(kLoad), Steps{});
    for (const int64_t step : {2, 3}) save_version(*manager, step, step);
    std::vector<std::string> now = folder.names();
    std::erase(now, ".lock");
    std::erase(now, "step-3");
    EXPECT_EQ(now, names);
    EXPECT_EQ(content_of(folder.at("step-1/model.bin")), "of another program");
}

TEST(Manager, OneWritesAndOthersRead)
{
    const TemporaryFolder folder;
    Ref<CheckpointManager> first = manager_of(folder.path());
    const Ref<CheckpointManager> second = manager_of(folder.path());
    save_version(*first, 1, 1);
    EXPECT_EQ(load_version(*second), 1);
    const std::string me = std::to_string(getpid());
    expect_error(YOKE_E_STATE, {kSave, ("process " + me + " (this one)").c_str()},
                 [&] { save_version(*second, 2, 2); });
    EXPECT_EQ(second->steps(kLoad), Steps{1});
    first = nullptr;
    save_version(*second, 2, 2);
    EXPECT_EQ(load_version(*second), 2);
}

TEST(Manager, AForkedChildIsAnotherWriter)
{
    const TemporaryFolder folder;
    const Ref<CheckpointManager> manager = manager_of(folder.path());
    save_version(*manager, 1, 1);
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        try {
            save_version(*manager, 2, 2);
        } catch (const Error &error) {
            const std::string who = "process " + std::to_string(parent) + " already writes";
            _exit(std::string(error.what()).find(who) != std::string::npos ? 0 : 1);
        }
        _exit(2);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    save_version(*manager, 3, 3);
    EXPECT_EQ(manager->steps(kLoad), (Steps{1, 3}));
}

// A killed run has forked a worker that lives on. The worker locks no process out of the folder.
TEST(Manager, AForkedChildHoldsNoLockOfItsParents)
{
    const TemporaryFolder folder;
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t run = fork();
    if (run == 0) {
        const Ref<CheckpointManager> manager = manager_of(folder.path());
        save_version(*manager, 1, 1);
        if (fork() == 0) {
            const pid_t worker = getpid();  // the worker has released the lock by now
            if (write(ends[1], &worker, sizeof worker) != sizeof worker) _exit(1);
            for (;;) pause();
        }
        _exit(0);
    }
    pid_t worker = 0;
    ASSERT_EQ(read(ends[0], &worker, sizeof worker), static_cast<ssize_t>(sizeof worker));
    int status = 0;
    waitpid(run, &status, 0);
    EXPECT_EQ(status, 0);
    const Ref<CheckpointManager> manager = manager_of(folder.path());
    EXPECT_NO_THROW(save_version(*manager, 2, 2));
    EXPECT_EQ(manager->steps(kLoad), (Steps{1, 2}));
    kill(worker, SIGKILL);
    for (const int end : ends) close(end);
}

TEST(Manager, ASaveListsTheFolderOnceBeforeItsCommitAndOnceBehind)
{
    const TemporaryFolder folder;
    const Ref<CheckpointManager> manager = manager_of(folder.at("run"));
    Seam seam;
    std::string calls;
    seam.fate = [&](const std::string &entry) {
        if (entry == "list" || entry == "rename" || entry == "exchange") calls += entry + " ";
        return 0;
    };
    for (const int64_t step : {1, 2}) {
        calls.clear();
        save_version(*manager, step, step);
        EXPECT_EQ(calls, "list rename list ");
    }
}

TEST(Manager, LeftoversGoWithTheNextSave)
{
    const TemporaryFolder folder;
    save_version(*manager_of(folder.path()), 1, 1);
    const std::string left = folder.at(".step-2.yoke-99999999-0123456789abcdef.tmp");
    std::filesystem::create_directory(left);
    put(left + "/state.safetensors", "a part");
    const Ref<CheckpointManager> manager = manager_of(folder.path());
    EXPECT_EQ(load_version(*manager), 1);
    EXPECT_EQ(manager->steps(kLoad), Steps{1});
    EXPECT_EQ(folder.leftovers().size(), 1u);
    save_version(*manager, 3, 3);
    EXPECT_TRUE(folder.leftovers().empty());
}

// A failed save leaves no file, and the next save succeeds.
TEST(Manager, AFailedSaveLeavesNothing)
{
    const TemporaryFolder folder;
    const Ref<CheckpointManager> manager = manager_of(folder.path());
    save_version(*manager, 1, 1);
    const Ref<State> wrong = State::make(StateDict());
    wrong->set("x", State::make(std::string("\xff")), kSave);
    EXPECT_THROW(manager->save(2, *wrong, {}, kSave), Error);
    {
        Seam seam;
        seam.fate = [](const std::string &entry) { return entry == "write" ? ENOSPC : 0; };
        expect_error(YOKE_E_IO, {kSave, "step-2", "No space left"},
                     [&] { save_version(*manager, 2, 2); });
    }
    EXPECT_EQ(folder.names(), (std::vector<std::string>{".lock", "step-1"}));
    save_version(*manager, 2, 2);
    EXPECT_EQ(load_version(*manager), 2);
}

// The writer overtakes a reader and removes the step amid the read. The reader goes on with the newer step.
TEST(Manager, AReaderGoesOnWhereTheWriterHasPassed)
{
    const TemporaryFolder folder;
    const Ref<CheckpointManager> writer = manager_of(folder.path(), 1);
    const Ref<CheckpointManager> reader = manager_of(folder.path(), 1);
    save_version(*writer, 1, 1);
    Seam seam;
    int opened = 0, version = 1;
    bool is_saving = false;
    seam.fate = [&](const std::string &entry) {
        // An attempt opens the folder, the manifest and the state. After a failure it opens folder and manifest
        // again. Before the first three times that the reader opens the state, the writer saves.
        if (!is_saving && entry == "open" && ++opened % 5 == 3 && version < 4) {
            is_saving = true;
            ++version;
            save_version(*writer, version, version);
            is_saving = false;
        }
        return 0;
    };
    EXPECT_EQ(load_version(*reader), 4);
    EXPECT_EQ(version, 4);
}

}  // namespace
}  // namespace yoke::test
