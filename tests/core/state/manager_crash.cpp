// Folder of a manager of checkpoints after crashes: core/state/manager*.cpp.
#include "core/state/new_folder.h"
#include "tests/core/state/crash_run.h"
#include "tests/core/state/manager_states.h"

#include "core/base/error.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <optional>

namespace yoke::test {
namespace {

constexpr const char *kNewest = "the newest";

// Run that may be killed and begun anew.
class Training : public CrashRun {
public:
    explicit Training(int64_t keep) : keep_(keep) { begin(); }

    void save(int64_t step, int64_t version)
    {
        // After a kill, drops the manager, so that its files are closed.
        doing(
            kNewest, std::to_string(version), [&] { save_version(*manager_, step, version); },
            [&] { manager_ = nullptr; });
        if (was_killed()) begin();
    }

private:
    void begin()
    {
        kill_at = 0;
        manager_ = manager_of(folder().path(), keep_);
    }

    const int64_t keep_;
    Ref<CheckpointManager> manager_;
};

void make(const TemporaryFolder &folder, const Tree &tree)
{
    for (const auto &[path, content] : tree)
        if (path.ends_with('/'))
            std::filesystem::create_directories(folder.at(path));
        else
            std::ofstream(folder.at(path), std::ios::binary) << content;
}

// Returns a manager's result for a state: the version of the newest step, or the defect.
std::string found_in(const Tree &tree)
{
    const TemporaryFolder folder;
    make(folder, tree);
    const Ref<CheckpointManager> manager = manager_of(folder.path());
    const std::vector<int64_t> steps = manager->steps(kLoad);
    std::string newest = kAbsent;
    for (const FoundFolder &each : find_folders(list_folder(kLoad, folder.path()))) {
        const int64_t step = std::stoll(each.name.substr(5));
        if (std::ranges::find(steps, step) == steps.end()) return each.name + " is damaged";
        try {
            const int64_t version = load_version(*manager, {.step = step});
            if (step == steps.back()) newest = std::to_string(version);
        } catch (const Error &error) {
            return error.what();
        }
    }
    return newest;
}

// Asks the disk about each state once. The key leaves temporaries out, because their names differ each time and no
// reader looks inside.
std::string wrong_for_a_manager(const Tree &tree, const Allowed &allowed)
{
    static std::map<Tree, std::string> known;
    Tree key = tree;
    std::erase_if(key, [](const auto &entry) {
        return entry.first.starts_with(".step-") && entry.first.find(".tmp") != std::string::npos;
    });
    const auto [place, is_new] = known.try_emplace(key);
    if (is_new) place->second = found_in(tree);
    const bool may_be_none = allowed.empty() && place->second == kAbsent;
    if (may_be_none || (!allowed.empty() && allowed.at(kNewest).contains(place->second))) return "";
    return "found " + place->second + " in\n" + shown(tree);
}

// Returns the events of five saves. Among them are a step saved anew, and a step with a smaller number than the step
// before.
std::vector<Event> five_saves(int64_t keep, bool can_exchange, const std::vector<int64_t> &steps)
{
    Training run(keep);
    run.can_exchange = can_exchange;
    int64_t version = 0;
    for (const int64_t step : steps) run.save(step, ++version);
    return run.events();
}

TEST(ManagerCrash, TheNewestIsOldOrNewAndAllAreWhole)
{
    for (const int64_t keep : {1, 3})
        for (const bool can_exchange : {true, false}) {
            const CrashStates states =
                crash_states(five_saves(keep, can_exchange, {1, 2, 2, 4, 3}), wrong_for_a_manager);
            EXPECT_EQ(states.wrong, "");
            EXPECT_GT(states.seen.size(), 500u);
            printf("five saves by a manager, keep %d%s: %zu states after a crash, of %zu made\n",
                   static_cast<int>(keep), can_exchange ? "" : ", without exchange",
                   states.seen.size(), states.tried);
        }
}

TEST(ManagerCrash, EachSyncIsNeeded)
{
    for (const int64_t keep : {1, 3}) {
        // With three saved steps no step is removed; a removal would add a sync.
        const std::vector<Event> events = five_saves(keep, true, {1, 2, 2, 1, 3});
        int syncs = 0;
        for (size_t i = 0; i < events.size(); ++i) {
            if (events[i].kind != Event::kSync) continue;
            ++syncs;
            for (const auto &other : {without(events, i), moved(events, i)})
                EXPECT_NE(crash_states(other, wrong_for_a_manager).wrong, "")
                    << "sync " << syncs << ", event " << i;
        }
        EXPECT_GE(syncs, 20);
    }
}

// A run is killed at a call of a save, and goes on. Nothing where the call comes no more.
std::optional<std::vector<Event>> a_killed_save(int kill_at, bool can_exchange)
{
    Training run(1);
    run.can_exchange = can_exchange;
    run.save(1, 1);
    run.kill_at = kill_at;
    run.save(1, 2);
    if (!run.was_killed()) return {};
    run.save(2, 3);
    EXPECT_EQ(run.folder().names(), (std::vector<std::string>{".lock", "step-2"}))
        << "killed at call " << kill_at;
    return run.events();
}

TEST(ManagerCrash, ACrashAfterAKillFindsAWholeStateToo)
{
    for (const bool can_exchange : {true, false}) {
        int kill_at = 1;
        size_t states = 0;
        for (;; ++kill_at) {
            const auto events = a_killed_save(kill_at, can_exchange);
            if (!events) break;
            const CrashStates found = crash_states(*events, wrong_for_a_manager);
            EXPECT_EQ(found.wrong, "") << "killed at call " << kill_at;
            states += found.seen.size();
        }
        EXPECT_GT(kill_at, 20);
        printf("killed at each of %d calls: %zu states after a crash\n", kill_at - 1, states);
    }
}

}  // namespace
}  // namespace yoke::test
