// main.cpp: programs of the allocator, made by number.
//
//     fuzz_memory [--programs N] [--first NUMBER]
#include "tests/fuzz/memory/program.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace {

uint64_t first = 0, count = 300;

// Steps and outcomes that must occur in 300 programs. Otherwise the programs are too weak.
constexpr const char *kMustMeet[] = {"served",
                                     "refused",
                                     "failed",
                                     "raw blocks",
                                     "captures",
                                     "replays",
                                     "wrong frees",
                                     "refused in a capture",
                                     "asked for relief",
                                     "planned failures",
                                     "ended threads",
                                     "switches of caching",
                                     "forks",
                                     "freed behind other streams",
                                     "uses up to an event",
                                     "optional, served",
                                     "optional, refused"};

TEST(MemoryPrograms, KeepEveryPromise)
{
    yoke::fuzz::Tally tally;
    for (uint64_t number = first; number < first + count; ++number) {
        std::mt19937_64 random(number);
        std::vector<uint8_t> bytes(200 + random() % 3000);
        for (uint8_t &byte : bytes) byte = static_cast<uint8_t>(random());
        yoke::fuzz::run_program(bytes.data(), bytes.size(), tally);
        if (!HasFailure()) continue;
        FAIL() << "it was program " << number << ": fuzz_memory --first " << number
               << " --programs 1";
    }
    for (const auto &[name, times] : tally)
        printf("%s: %llu\n", name.c_str(), static_cast<unsigned long long>(times));
    if (count < 300) return;
    for (const char *name : kMustMeet) EXPECT_GT(tally[name], 0u) << name;
}

}  // namespace

int main(int argc, char **argv)
{
    testing::InitGoogleTest(&argc, argv);
    for (int i = 1; i + 1 < argc; i += 2) {
        const uint64_t value = strtoull(argv[i + 1], nullptr, 10);
        if (!strcmp(argv[i], "--programs")) count = value;
        if (!strcmp(argv[i], "--first")) first = value;
    }
    return RUN_ALL_TESTS();
}
