// Lines of scripts: a line is a single object, and each provider is dropped once. See core/base/script.cpp.
#include "core/base/script.h"

#include "tests/core/fresh_process.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace yoke::test {
namespace {

struct Place {
    std::string file, function;
    int32_t line = 1;
    int32_t is_known = 1;
    std::atomic<int> dropped{0};

    static int32_t tell(void *user, const char **file, int32_t *line, const char **function)
    {
        const auto &self = *static_cast<Place *>(user);
        EXPECT_EQ(self.dropped.load(), 0);
        *file = self.file.c_str();
        *line = self.line;
        *function = self.function.c_str();
        return self.is_known;
    }
    static void drop(void *user) { ++static_cast<Place *>(user)->dropped; }
    void set() { set_stack_provider(tell, this, drop); }
};

void take_away()
{
    set_stack_provider(nullptr, nullptr, nullptr);
}

TEST(Script, ALineIsOneObjectForAsLongAsTheProcessLives)
{
    EXPECT_EQ(script_line(), nullptr);
    Place place{"a.py", "f", 3};
    place.set();
    const ScriptLine *const first = script_line();
    EXPECT_EQ(describe(first), "a.py:3 (f)");
    EXPECT_EQ(script_line(), first);
    place.line = 4;
    const ScriptLine *const other = script_line();
    EXPECT_EQ(describe(other), "a.py:4 (f)");
    place.line = 3;
    EXPECT_EQ(script_line(), first);
    EXPECT_EQ(describe(first), "a.py:3 (f)");
    std::thread([&] { EXPECT_EQ(script_line(), first); }).join();
    place.is_known = 0;
    EXPECT_EQ(script_line(), nullptr);
    take_away();
    EXPECT_EQ(script_line(), nullptr);
    EXPECT_EQ(place.dropped, 1);
}

TEST(Script, WhatAHostLeavesOutIsLeftOut)
{
    EXPECT_EQ(describe_line("a.c", 0, ""), "a.c");
    EXPECT_EQ(describe_line("a.c", 7, ""), "a.c:7");
    EXPECT_EQ(describe_line("", 7, "f"), "f");
    const ScriptLine *const nobody = nullptr;
    EXPECT_EQ(describe(nobody), "");
}

TEST(Script, LongNamesAreCutAtAWholeCharacter)
{
    Place place{std::string(4095, 'a') + "\u00e4", "f", 1};
    place.set();
    EXPECT_EQ(script_line()->file, std::string(4095, 'a'));
    take_away();
}

TEST(Script, ProvidersAreReplacedWhileThreadsAskAndEachIsDroppedOnce)
{
    constexpr int kPlaces = 200, kThreads = 3;
    std::vector<Place> places(kPlaces);
    std::atomic<bool> is_over{false};
    std::atomic<int> asking{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&] {
            ++asking;
            while (!is_over)
                if (const ScriptLine *const line = script_line()) {
                    EXPECT_EQ(line->file, "many.py");
                }
        });
    while (asking < kThreads) std::this_thread::yield();
    for (int i = 0; i < kPlaces; ++i) {
        places[static_cast<size_t>(i)].file = "many.py";
        places[static_cast<size_t>(i)].line = i;
        places[static_cast<size_t>(i)].set();
    }
    take_away();
    is_over = true;
    for (std::thread &each : threads) each.join();
    for (const Place &each : places) EXPECT_EQ(each.dropped, 1);
}

TEST(Script, PlacesHaveAnEnd)
{
    in_fresh_process([] {  // the child uses up its places
        Place place{"made.py", "f", 1};
        place.set();
        const ScriptLine *const known = script_line();
        for (place.line = 2; script_line();) ++place.line;
        EXPECT_GT(place.line, 60000);
        place.line = 1;
        EXPECT_EQ(script_line(), known);  // known places stay
        take_away();
    });
}

}  // namespace
}  // namespace yoke::test
