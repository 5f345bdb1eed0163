// Sets of files after crashes, kills and failed calls: core/state/file_set.cpp.
#include "core/state/file_set.h"
#include "core/state/set_index.h"
#include "tests/core/state/crash_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>

namespace yoke::test {
namespace {

constexpr const char *kFile = "model.safetensors", *kIndex = "model.safetensors.index.json";
constexpr const char *kBroken = "a broken set";

std::string part(int version, int i)
{
    return format("part %d of %d, ", i, version);
}

std::string content_of_version(int version, int parts)
{
    std::string all;
    for (int i = 0; i < parts; ++i) all += part(version, i);
    return all;
}

// Returns the text of a set as the loader finds it; each file holds a text.
std::string set_in(const Tree &tree)
{
    const auto index = tree.find(kIndex);
    if (index == tree.end()) return kAbsent;
    try {
        const SetIndex read = SetIndex::read(index->second, kIndex);
        std::string all;
        for (size_t i = 0; i < read.file_count(); ++i) {
            const auto file = tree.find(std::string(read.file(i)));
            if (file == tree.end()) return kBroken;
            all += file->second;
        }
        return all;
    } catch (const Error &) {
        return kBroken;
    }
}

// The file comes before the set.
std::string model_in(const Tree &tree)
{
    const auto file = tree.find(kFile);
    return file != tree.end() ? file->second : set_in(tree);
}

// Returns the defect of a state, or "". A present set must be whole, even if a file comes before the set.
std::string wrong_with_model(const Tree &tree, const Allowed &allowed)
{
    const auto may = [&](const std::string &found) {
        const auto known = allowed.find("model");
        return known == allowed.end() ? found == kAbsent : known->second.contains(found);
    };
    const std::string set = set_in(tree), found = model_in(tree);
    if (!may(found)) return "the model is " + found + " in\n" + shown(tree);
    if (set != kAbsent && !may(set)) return "the set is " + set + " in\n" + shown(tree);
    return "";
}

// Run that saves files and sets in the same place.
class SetSaver : public CrashRun {
public:
    // Saves `files` files; a single file is no set.
    void save(int version, int files)
    {
        const std::string content = content_of_version(version, files);
        doing("model", content, [&] { files > 1 ? save_set(version, files) : save_file(content); });
    }
    std::string found() const
    {
        Tree tree;
        for (const std::string &name : folder().names()) tree[name] = content_of(folder().at(name));
        return model_in(tree);
    }

private:
    void save_file(const std::string &content)
    {
        NewFile file(kSaveCall, folder().at(kFile));
        file.write(content.data(), content.size());
        file.commit();
        remove_former_set(file.folder(), file.name());
    }
    void save_set(int version, int files)
    {
        NewSet set(kSaveCall, folder().at(kFile));
        std::vector<FileOfSet> named;
        for (int i = 0; i < files; ++i) {
            const std::string text = part(version, i);
            named.push_back({set.name_of(static_cast<size_t>(i), static_cast<size_t>(files)),
                             {"tensor " + std::to_string(i)}});
            set.begin(named.back().name);
            set.write(text.data(), text.size());
        }
        set.commit(make_set_index(named, {}, 0));
    }
};

std::vector<Event> six_saves()
{
    SetSaver saver;
    int version = 0;
    for (const int files : {1, 2, 3, 1, 2, 2}) saver.save(++version, files);
    return saver.events();
}

TEST(SetCrash, OldOrNewAfterEveryCrash)
{
    const CrashStates states = crash_states(six_saves(), wrong_with_model);
    EXPECT_EQ(states.wrong, "");
    EXPECT_GT(states.seen.size(), 200u);
    printf("six saves of a file and of sets: %zu states after a crash, of %zu made\n",
           states.seen.size(), states.tried);
}

TEST(SetCrash, EverySyncIsNeeded)
{
    const std::vector<Event> events = six_saves();
    int syncs = 0;
    for (size_t i = 0; i < events.size(); ++i) {
        if (events[i].kind != Event::kSync) continue;
        ++syncs;
        EXPECT_NE(crash_states(without(events, i), wrong_with_model).wrong, "")
            << "sync " << syncs << ", event " << i;
        EXPECT_NE(crash_states(moved(events, i), wrong_with_model).wrong, "")
            << "sync " << syncs << " moved, event " << i;
    }
    EXPECT_GT(syncs, 20);
}

// Kills a save at each call, and then saves again, as a set or as a file.
void kill_at_each_call(int former, int killed, int next)
{
    SCOPED_TRACE(format("%d files, killed while saving %d, then %d", former, killed, next));
    int kill_at = 0;
    for (bool was_killed = true; was_killed;) {
        SetSaver saver;
        saver.save(1, former);
        saver.kill_at = ++kill_at;
        saver.save(2, killed);
        was_killed = saver.was_killed();
        const std::string found = saver.found();
        EXPECT_TRUE(found == content_of_version(1, former) ||
                    found == content_of_version(2, killed))
            << "killed at call " << kill_at << ": " << found;
        saver.kill_at = 0;
        saver.save(3, next);
        EXPECT_EQ(saver.found(), content_of_version(3, next));
        EXPECT_EQ(saver.folder().names().size(), next == 1 ? 1u : static_cast<size_t>(next) + 1)
            << "killed at call " << kill_at;
        EXPECT_EQ(crash_states(saver.events(), wrong_with_model).wrong, "")
            << "killed at call " << kill_at;
    }
    EXPECT_GT(kill_at, 10);
}

TEST(SetCrash, AKilledSaveLeavesTheFormerOneAndNothingPilesUp)
{
    kill_at_each_call(2, 3, 2);
    kill_at_each_call(2, 2, 1);
    kill_at_each_call(1, 2, 2);
    kill_at_each_call(1, 2, 1);
    kill_at_each_call(2, 1, 2);
    kill_at_each_call(2, 1, 1);
}

// Returns false if there is no such call.

// False where there is no such call.
bool fail_once(int former, int next, int call, int fault)
{
    SCOPED_TRACE(format("%d files, then %d: call %d fails with %d", former, next, call, fault));
    SetSaver saver;
    saver.save(1, former);
    const size_t files = open_files();
    saver.fail_at = call;
    saver.fault = fault;
    saver.save(2, next);
    const int calls = saver.calls();
    saver.fail_at = 0;
    const std::string found = saver.found();
    EXPECT_EQ(open_files(), files);
    if (const std::optional<Error> error = saver.error()) {
        EXPECT_TRUE(found == content_of_version(1, former) || found == content_of_version(2, next));
        EXPECT_STREQ(status_name(error->status()), "YOKE_E_IO") << error->what();
        EXPECT_NE(fault, EINTR) << error->what();
        EXPECT_EQ(error->native_code(), fault == kShort ? ENOSPC : fault) << error->what();
        const std::string what = error->what();
        EXPECT_NE(what.find(saver.folder().path()), what.npos) << what;
        // If the former content is found, the folder has no other files, except for a new set whose former file could
        // not be removed.
        const bool is_placed = std::filesystem::exists(saver.folder().at(kIndex)) && former == 1;
        if (found == content_of_version(1, former) && !is_placed) {
            EXPECT_EQ(saver.folder().names().size(),
                      former == 1 ? size_t{1} : size_t{1} + static_cast<size_t>(former));
        }
    } else {
        EXPECT_EQ(found, content_of_version(2, next));
    }
    EXPECT_TRUE(saver.folder().leftovers().empty());
    saver.save(3, next);
    EXPECT_FALSE(saver.error());
    EXPECT_EQ(saver.found(), content_of_version(3, next));
    EXPECT_EQ(saver.folder().names().size(), next == 1 ? 1u : static_cast<size_t>(next) + 1);
    return call < calls;
}

TEST(SetFaults, EachCallFailsOnce)
{
    int failures = 0;
    for (const auto &[former, next] : {std::pair(2, 3), {1, 2}, {2, 1}})
        for (const int fault : {ENOSPC, EIO, EINTR, kShort}) {
            int call = 1;
            while (fail_once(former, next, call, fault)) ++call;
            failures += call;
        }
    EXPECT_GT(failures, 200);
}

}  // namespace
}  // namespace yoke::test
