// Rests that crashes leave of files and folders of state: core/state/new_file.cpp, new_folder.cpp, temporary.cpp.
#include "core/state/new_folder.h"
#include "tests/core/state/crash_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>

namespace yoke::test {
namespace {

std::vector<std::string> parts_of(int version, int writes)
{
    std::vector<std::string> parts;
    for (int i = 0; i < writes; ++i) parts.push_back(format("part %d of %d, ", i, version));
    return parts;
}

std::string joined(const std::vector<std::string> &parts)
{
    std::string all;
    for (const std::string &part : parts) all += part;
    return all;
}

class Saver : public CrashRun {
public:
    // `writes` is the number of writes to a file: many for many states, 1 in tests with many saves.
    explicit Saver(int writes) : writes_(writes) {}

    void save_file(int version)
    {
        const std::vector<std::string> parts = parts_of(version, writes_);
        doing("state", joined(parts), [&] {
            NewFile file(kSaveCall, folder().at("state"));
            for (const std::string &part : parts) file.write(part.data(), part.size());
            file.commit();
        });
    }
    void save_step(int step, int version)
    {
        const std::vector<std::string> parts = parts_of(version, writes_);
        const std::string hash = format("hash %d", version), name = format("step-%d", step);
        const auto content = folder_content({{"state", joined(parts)}, {"manifest", hash}});
        doing(name, content, [&] {
            NewFolder made(kSaveCall, folder().path(), name, folder().names());
            FileWriter &state = made.create("state");
            for (const std::string &part : parts) state.write(part.data(), part.size());
            state.finish();
            made.create("manifest").write(hash.data(), hash.size());
            made.commit();
        });
    }
    void remove_step(int step)
    {
        const std::string name = format("step-%d", step);
        doing(name, kAbsent, [&] { remove_folder(kSaveCall, folder().at(name)); });
    }

private:
    const int writes_;
};

std::vector<Event> saves_of_a_file(int writes)
{
    Saver saver(writes);
    for (int version = 1; version <= 5; ++version) saver.save_file(version);
    return saver.events();
}

std::vector<Event> commits_of_folders(bool can_exchange, int writes)
{
    Saver saver(writes);
    saver.can_exchange = can_exchange;
    saver.save_step(1, 1);
    saver.save_step(2, 2);
    saver.save_step(2, 3);
    saver.remove_step(2);
    saver.save_step(3, 4);
    saver.remove_step(1);
    saver.save_step(4, 5);
    return saver.events();
}

// A step is saved anew and killed at a call, and the next run goes on. Nothing where the call comes no more.
template <class Next>
std::optional<std::vector<Event>> a_killed_commit(bool can_exchange, int kill_at, const Next &next)
{
    Saver saver(1);
    saver.can_exchange = can_exchange;
    saver.save_step(1, 1);
    saver.kill_at = kill_at;
    saver.save_step(1, 2);
    if (!saver.was_killed()) return {};
    saver.kill_at = 0;
    next(saver);
    return saver.events();
}

void save_again(Saver &saver)
{
    saver.save_step(1, 4);
    EXPECT_EQ(saver.folder().names(), std::vector<std::string>{"step-1"});
}

void save_and_remove(Saver &saver)
{
    saver.save_step(2, 3);
    saver.save_step(1, 4);
    saver.remove_step(1);
    EXPECT_EQ(saver.folder().names(), std::vector<std::string>{"step-2"});
}

bool is_needed(const std::vector<Event> &events, size_t sync)
{
    return !crash_states(without(events, sync)).wrong.empty();
}

// Returns the syncs of the last action before it makes a folder. These syncs clean up.
std::vector<size_t> syncs_of_recovery(const std::vector<Event> &events)
{
    std::vector<size_t> syncs;
    size_t i = events.size();
    while (events[i - 1].kind != Event::kBegin) --i;
    for (; i < events.size() && events[i].kind != Event::kFolder; ++i)
        if (events[i].kind == Event::kSync) syncs.push_back(i);
    return syncs;
}

// Checks that each sync is needed: without the sync some state would be wrong.
void expect_each_sync_needed(const std::vector<Event> &events)
{
    int syncs = 0;
    for (size_t i = 0; i < events.size(); ++i) {
        if (events[i].kind != Event::kSync) continue;
        ++syncs;
        EXPECT_TRUE(is_needed(events, i)) << "sync " << syncs << ", event " << i;
        EXPECT_NE(crash_states(moved(events, i)).wrong, "")
            << "sync " << syncs << " moved, event " << i;
    }
    EXPECT_GT(syncs, 9);
}

void expect_whole(const std::vector<Event> &events, const char *what, size_t least)
{
    const CrashStates states = crash_states(events);
    EXPECT_EQ(states.wrong, "");
    EXPECT_GT(states.seen.size(), least);
    printf("%s: %zu states after a crash, of %zu made\n", what, states.seen.size(), states.tried);
}

TEST(FilesCrash, AFileIsOldOrNewAfterEveryCrash)
{
    expect_whole(saves_of_a_file(4), "five saves of a file", 500);
    expect_each_sync_needed(saves_of_a_file(1));
}

TEST(FilesCrash, AFolderIsOldOrNewAfterEveryCrash)
{
    for (const bool can_exchange : {true, false}) {
        expect_whole(commits_of_folders(can_exchange, 4),
                     can_exchange ? "five folders" : "five folders, without exchange", 1000);
        expect_each_sync_needed(commits_of_folders(can_exchange, 1));
    }
}

TEST(FilesCrash, ACrashAfterAKillFindsAWholeFileToo)
{
    bool was_killed = true;
    int kill_at = 0;
    while (was_killed) {
        Saver saver(2);
        saver.save_file(1);
        saver.kill_at = ++kill_at;
        saver.save_file(2);
        was_killed = saver.was_killed();
        saver.kill_at = 0;
        saver.save_file(3);
        EXPECT_EQ(saver.folder().names(), std::vector<std::string>{"state"});
        EXPECT_EQ(crash_states(saver.events()).wrong, "") << "killed at call " << kill_at;
    }
    EXPECT_GT(kill_at, 10);
}

TEST(FilesCrash, ACrashAfterAKillFindsAWholeFolderToo)
{
    for (const bool can_exchange : {true, false}) {
        int kill_at = 1;
        std::set<Tree> seen;
        for (;; ++kill_at) {
            const auto events = a_killed_commit(can_exchange, kill_at, save_and_remove);
            if (!events) break;
            CrashStates states = crash_states(*events);
            EXPECT_EQ(states.wrong, "") << "killed at call " << kill_at;
            seen.merge(states.seen);
        }
        EXPECT_GT(kill_at, 15);
        printf("killed at each of %d calls: %zu states after a crash\n", kill_at - 1, seen.size());
    }
}

// Checks the cleanup after a writer that was killed behind its last rename, which may not be on the disk yet. After
// some kill the cleanup takes `syncs` syncs, and the syncs `needed` are needed.
template <class Next>
void expect_recovery_needs(const std::vector<size_t> &needed, size_t syncs, bool can_exchange,
                           const Next &next)
{
    bool all_needed = false;
    for (int kill_at = 1; !all_needed; ++kill_at) {
        const auto events = a_killed_commit(can_exchange, kill_at, next);
        if (!events) break;
        const std::vector<size_t> found = syncs_of_recovery(*events);
        all_needed = found.size() == syncs && std::ranges::all_of(needed, [&](size_t i) {
                         return is_needed(*events, found[i]);
                     });
    }
    EXPECT_TRUE(all_needed) << syncs << (can_exchange ? "" : ", without exchange");
}

TEST(FilesCrash, EachSyncOfARecoveryIsNeeded)
{
    expect_recovery_needs({0}, 1, true, save_again);
    // A writer that goes on needs the new folder on the disk. A writer that removes the new folder at once needs the
    // old folder gone.
    expect_recovery_needs({0}, 2, false, save_again);
    expect_recovery_needs({1, 2}, 3, false, [](Saver &saver) { saver.remove_step(1); });
}

}  // namespace
}  // namespace yoke::test
