// What crashes leave of sets of files, and of a set and a file in each other's place: core/state/file_set.cpp.
#include "core/state/file_set.h"
#include "core/state/set_index.h"
#include "tests/core/state/crash_states.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>

namespace yoke::test {
namespace {

constexpr const char *kCall = "yoke_save";
constexpr const char *kName = "state.safetensors";

// What of a set or a file is compared: what its parts hold.
std::string part_of(int version, int part)
{
    return format("version %d, part %d; ", version, part);
}

// As a loader finds it: the file, else the set in the place of which it would be.
std::string found_in(const Tree &tree)
{
    if (const auto file = tree.find(kName); file != tree.end()) return file->second;
    const auto index = tree.find(index_name(kName));
    if (index == tree.end()) return kAbsent;
    std::string all;
    try {
        const SetIndex set = SetIndex::read(index->second, "index");
        for (size_t i = 0; i < set.file_count(); ++i) {
            const auto part = tree.find(std::string(set.file(i)));
            all += part == tree.end() ? "(missing)" : part->second;
        }
    } catch (const Error &error) {
        return error.what();
    }
    return all;
}

std::string wrong_with_set(const Tree &tree, const Allowed &allowed)
{
    const auto known = allowed.find(kName);
    const std::string found = found_in(tree);
    if (known == allowed.end() ? found == kAbsent : known->second.contains(found)) return "";
    return "'" + found + "' is found in " + shown(tree);
}

class Saver {
public:
    Saver() : log_(folder_.path()), seam_(&log_)
    {
        seam_.fate = [this](const std::string &) {
            if (is_killed_ || ++calls_ == kill_at) return is_killed_ = true, kDead;
            return 0;
        };
    }

    // A file has one part, a set several.
    void save(int parts)
    {
        const int version = ++version_;
        std::string content;
        for (int i = 0; i < parts; ++i) content += part_of(version, i);
        calls_ = 0;
        log_.begin(kName, content);
        try {
            parts == 1 ? save_file(content) : save_set(version, parts);
        } catch (const Error &) {
            EXPECT_TRUE(is_killed_);
        }
        was_killed_ = std::exchange(is_killed_, false);
        if (!was_killed_) log_.returned(kName, content);
    }

    const std::vector<Event> &events() const { return log_.events; }
    bool was_killed() const { return was_killed_; }
    const TemporaryFolder &folder() const { return folder_; }

    int kill_at = 0;  // the number of a call of the next save

private:
    void save_file(const std::string &content)
    {
        NewFile file(kCall, folder_.at(kName));
        file.write(content.data(), content.size());
        file.commit();
        remove_former_set(file.folder(), file.name());
    }
    void save_set(int version, int parts)
    {
        NewSet set(kCall, folder_.at(kName));
        std::vector<FileOfSet> files;
        for (int i = 0; i < parts; ++i) {
            const std::string content = part_of(version, i);
            files.push_back({set.name_of(static_cast<size_t>(i), static_cast<size_t>(parts)),
                             {format("t%d", i)}});
            set.begin(files.back().name);
            set.write(content.data(), content.size());
        }
        set.commit(make_set_index(files, {}, 100));
    }

    TemporaryFolder folder_;
    Log log_;
    Seam seam_;
    int version_ = 0, calls_ = 0;
    bool is_killed_ = false, was_killed_ = false;
};

std::vector<Event> saves(const std::vector<int> &parts)
{
    Saver saver;
    for (const int each : parts) saver.save(each);
    return saver.events();
}

TEST(SetCrash, ASetIsOldOrNewAfterEveryCrash)
{
    size_t seen = 0;
    for (const auto &parts : std::vector<std::vector<int>>{{2, 2, 3}, {1, 2, 1}, {2, 1, 2}}) {
        const CrashStates states = crash_states(saves(parts), wrong_with_set);
        EXPECT_EQ(states.wrong, "");
        seen += states.seen.size();
    }
    EXPECT_GT(seen, 400U);
    printf("saves of sets: %zu states after a crash\n", seen);
}

bool is_needed(std::vector<Event> events, size_t sync)
{
    events.erase(events.begin() + static_cast<long>(sync));
    return !crash_states(events, wrong_with_set).wrong.empty();
}

// Where a file and a set take each other's place, some are not, as long as the file is there, which comes first.
TEST(SetCrash, EachSyncOfASetInPlaceOfASetIsNeeded)
{
    const std::vector<Event> events = saves({2, 2, 3});
    int syncs = 0;
    for (size_t i = 0; i < events.size(); ++i)
        if (events[i].kind == Event::kSync) {
            ++syncs;
            EXPECT_TRUE(is_needed(events, i)) << "sync " << syncs << ", event " << i;
        }
    EXPECT_EQ(syncs, 7 + 3 * 3);
}

TEST(SetCrash, ACrashAfterAKillFindsAWholeSetToo)
{
    for (const auto &parts : std::vector<std::vector<int>>{{2, 3, 2}, {1, 2, 1}, {2, 1, 2}}) {
        int kill_at = 0;
        bool was_killed = true;
        while (was_killed) {
            Saver saver;
            saver.save(parts[0]);
            saver.kill_at = ++kill_at;
            saver.save(parts[1]);
            was_killed = saver.was_killed();
            saver.kill_at = 0;
            saver.save(parts[2]);
            EXPECT_EQ(saver.folder().names().size(), parts[2] == 1 ? 1U : 3U)
                << "killed at call " << kill_at;
            EXPECT_EQ(crash_states(saver.events(), wrong_with_set).wrong, "")
                << "killed at call " << kill_at;
        }
        EXPECT_GT(kill_at, 10);
    }
}

}  // namespace
}  // namespace yoke::test
