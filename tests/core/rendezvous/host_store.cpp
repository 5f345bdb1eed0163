// Ranks that find each other in a store of the host's, or do not.
#include "core/rendezvous/host_store.h"

#include "core/store/store_hash.h"
#include "tests/core/comm/ranks.h"
#include "tests/core/fresh_process.h"

#include <sched.h>

#include <atomic>
#include <thread>

namespace yoke {
namespace {

using test::expect_parts;
using test::options_of;

constexpr double kShort = 0.5;  // timeout of calls expected to time out

// Store of the host program, shared by the ranks of a test, which are threads.
class SharedTable final : public HostStore {
public:
    void set(const std::string &key, const std::string &value) override
    {
        ++calls;
        table.set(key, value, Deadline::after(20));
    }
    std::string get(const std::string &key, Deadline deadline) override
    {
        ++calls;
        return table.get(key, deadline);
    }
    HashStore table;
    std::atomic<int> calls{0};
};

std::vector<std::string> meet_in(SharedTable &store, std::initializer_list<int> present, int size,
                                 double timeout_s = 20)
{
    std::vector<std::string> texts(static_cast<size_t>(size));
    std::vector<std::thread> ranks;
    for (const int rank : present)
        ranks.emplace_back([&, rank, size] {
            RendezvousOptions options = options_of(
                {{"RANK", std::to_string(rank)}, {"WORLD_SIZE", std::to_string(size)}}, timeout_s);
            options.host_store = &store;
            try {
                texts[static_cast<size_t>(rank)] = test::tell(meet(options));
            } catch (const Error &error) {
                texts[static_cast<size_t>(rank)] =
                    std::string(status_name(error.status())) + " " + error.what();
            }
        });
    for (std::thread &rank : ranks) rank.join();
    return texts;
}

TEST(HostStore, RanksFindRankZeroInItAndAskItNoMore)
{
    test::in_fresh_process([] {
        SharedTable store;
        for (int i = 1; i <= 2; ++i) {  // a store serves a job repeatedly
            const std::vector<std::string> texts = meet_in(store, {0, 1, 2}, 3);
            EXPECT_EQ(texts[0], texts[1]);
            EXPECT_EQ(texts[0].substr(texts[0].rfind(' ')), " 012") << texts[0];
            if (i == 1) {
                EXPECT_EQ(store.calls, 3);  // rank 0 sets, and each other rank gets
            }
        }
    });
}

TEST(HostStore, WhatAFormerJobHasLeftInItIsPassedOver)
{
    test::in_fresh_process([] {  // this process counts its inits from 0
        SharedTable store;
        store.table.set("yoke/start0/rank0", "yoke 1 1 00112233 127.0.0.1", Deadline::after(9));
        std::vector<std::string> others;
        std::thread early([&] { others = meet_in(store, {1}, 2); });
        while (store.calls < 2) std::this_thread::yield();  // rank 1 reads the key again
        const std::vector<std::string> first = meet_in(store, {0}, 2);
        early.join();
        EXPECT_EQ(first[0], others[1]);
        EXPECT_EQ(first[0].substr(first[0].rfind(' ')), " 01") << first[0];
    });
}

TEST(HostStore, WhoIsMissingIsNamed)
{
    test::in_fresh_process([] {
        SharedTable store, empty;
        expect_parts(meet_in(store, {0, 2}, 3, kShort)[2],
                     {"YOKE_E_TIMEOUT", "1 of 3 ranks did not arrive: 1;"});
        expect_parts(meet_in(empty, {1}, 2, kShort)[1],
                     {"YOKE_E_TIMEOUT", "rank 1 (host", "no address of rank 0", "store"});
    });
}

TEST(HostStore, OtherDataInItIsRefused)
{
    test::in_fresh_process([] {
        SharedTable strange;
        strange.table.set("yoke/start0/rank0", "a piano", Deadline::after(9));
        expect_parts(meet_in(strange, {1}, 2)[1], {"YOKE_E_COMM", "'a piano'", "its own store"});
    });
}

TEST(HostStore, OfAnotherVersionNothingIsShown)
{
    test::in_fresh_process([] {
        SharedTable later;
        later.table.set("yoke/start0/rank0", "yoke 2 00112233 x", Deadline::after(9));
        const std::string text = meet_in(later, {1}, 2)[1];
        expect_parts(text, {"YOKE_E_COMM", "'yoke ...'", "its own store"});
        EXPECT_EQ(text.find("00112233"), std::string::npos) << text;
    });
}

TEST(HostStore, AHostWithoutAnyNetworkIsNamedOnAllRanks)
{
    test::in_fresh_process([] {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
            printf("skipped: this process may make no network of its own\n");
            return;
        }
        SharedTable store;
        for (const std::string &text : meet_in(store, {0, 1}, 2)) {
            expect_parts(text, {"YOKE_E_COMM", "rank 0 has no network, not even loopback"});
            EXPECT_EQ(text.find("yoke 1"), std::string::npos) << text;
        }
    });
}

}  // namespace
}  // namespace yoke
