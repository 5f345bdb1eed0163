// Ranks that die after the rendezvous, and reports of the death.
#include "core/comm/init.h"
#include "core/rendezvous/relay.h"
#include "core/select/select.h"
#include "tests/core/comm/ranks.h"

#include <thread>

namespace yoke {
namespace {

using test::expect_parts;
using test::options_of;
using test::Port;
using test::process_of;
using test::RankProcess;
using test::results;
using test::variables_of;

// Starts a rank that waits for another rank's death, and returns the report.
RankProcess survivor(int rank, uint16_t port)
{
    return RankProcess([=] {
        const auto died = std::make_shared<HashStore>();
        RendezvousOptions options = options_of(variables_of(rank, 3, port));
        options.observer = [died](const PeerEvent &event) {
            if (event.kind == PeerEvent::kEnded)
                died->set("who", format("rank %d died (%s)", event.rank, event.about.c_str()),
                          Deadline::after(0));
        };
        const Rendezvous met = meet(options);
        std::string who = died->get("who", Deadline::after(20));
        // A key in the store reports the death to the other ranks. Each rank notices rank 0's death itself.
        if (met.server) {
            met.store->set("cause", who, Deadline::after(20));
            met.server->wait_until_left(Deadline::after(20));
        }
        return who;
    });
}

RankProcess victim(int rank, uint16_t port)
{
    return RankProcess([=]() -> std::string {
        const Rendezvous met = meet(options_of(variables_of(rank, 3, port)));
        // A rank that dies has met all other ranks before.
        if (met.server)
            met.server->table()->wait({"start0/met/1", "start0/met/2"}, Deadline::after(20));
        raise(SIGKILL);
        return "";
    });
}

TEST(Deaths, OneIsToldToWhoWatches)
{
    const Port port;
    std::vector<RankProcess> ranks;
    ranks.push_back(survivor(0, port.number()));
    RankProcess other([&]() -> std::string {
        const Rendezvous met = meet(options_of(variables_of(2, 3, port.number())));
        return met.store->get("cause", Deadline::after(20));
    });
    RankProcess dying = victim(1, port.number());
    const std::string told = ranks[0].result();
    expect_parts(told, {"rank 1 died (host", process_of(dying)});
    EXPECT_EQ(other.result(), told);
}

TEST(Deaths, ThatOfRankZeroIsToldToAll)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int rank : {1, 2})
        ranks.push_back(RankProcess([&, rank]() -> std::string {
            const auto died = std::make_shared<HashStore>();
            RendezvousOptions options = options_of(variables_of(rank, 3, port.number()));
            options.observer = [died](const PeerEvent &event) {
                died->set("who", format("%d %d", event.rank, event.kind), Deadline::after(0));
            };
            const Rendezvous met = meet(options);
            try {
                met.store->set("met/" + std::to_string(rank), "", Deadline::after(20));
            } catch (const Error &) {  // rank 0 received the key, and died before its answer
            }
            return died->get("who", Deadline::after(20));
        }));
    RankProcess dying = victim(0, port.number());
    for (const std::string &text : results(ranks))
        EXPECT_EQ(text, format("0 %d", PeerEvent::kEnded));
}

// The event comes in while the relay repeats earlier events.
TEST(Deaths, OneThatIsHeardOfWhileAllAreFoundToBeThereIsToldLast)
{
    std::vector<std::pair<int32_t, PeerEvent::Kind>> told;
    Relay *told_by = nullptr;
    Relay relay([&](const PeerEvent &event) {
        told.emplace_back(event.rank, event.kind);
        if (told.size() == 1)
            std::thread([&] { told_by->tell({PeerEvent::kEnded, 2, 0, "", ""}); }).join();
    });
    told_by = &relay;
    relay.tell({PeerEvent::kJoined, 1, 0, "", ""});
    relay.tell({PeerEvent::kJoined, 2, 0, "", ""});
    relay.complete();
    relay.tell({PeerEvent::kLeft, 1, 0, "", ""});
    using Told = std::pair<int32_t, PeerEvent::Kind>;
    EXPECT_EQ(told, (std::vector<Told>{{1, PeerEvent::kJoined},
                                       {2, PeerEvent::kJoined},
                                       {2, PeerEvent::kEnded},
                                       {1, PeerEvent::kLeft}}));
}

// ---- Calls of a group beside its collectives --------------------------------------------------------------------

RankProcess member(int rank, uint16_t port, const std::function<std::string(Group &)> &body)
{
    return RankProcess([=] {
        InitOptions options;
        options.arguments.init_method = format("tcp://127.0.0.1:%d", port);
        options.arguments.rank = rank;
        options.arguments.size = 3;
        return body(*init_group(options, "init"));
    });
}

void expect_death_told(const std::function<std::string(Group &)> &body)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1}) ranks.push_back(member(rank, port.number(), body));
    RankProcess dying = member(2, port.number(), [](Group &) -> std::string {
        raise(SIGKILL);
        return "";
    });
    for (const std::string &text : results(ranks))
        expect_parts(text, {"YOKE_E_COMM", "rank 2 (host", process_of(dying), "died"});
}

TEST(Deaths, OneIsToldToWhoSplits)
{
    expect_death_told([](Group &group) {
        group.split(0, 0);
        return std::string("it was made");
    });
}

TEST(Deaths, OneIsToldToWhoMakesMemory)
{
    expect_death_told([](Group &group) {
        const int64_t shape[] = {5};
        group.empty(shape, YOKE_F32, open_device("cpu"));
        return std::string("it was made");
    });
}

TEST(Deaths, ThatOfRankZeroIsToldToWhoSplits)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int rank : {1, 2})
        ranks.push_back(member(rank, port.number(), [](Group &group) {
            for (;;) (void)group.split(1, 0);
            return std::string();
        }));
    RankProcess dying = member(0, port.number(), [](Group &group) -> std::string {
        for (int i = 0; i < 3; ++i) (void)group.split(0, 0);
        raise(SIGKILL);
        return "";
    });
    for (const std::string &text : results(ranks))
        expect_parts(text, {"YOKE_E_COMM split: rank 0 (host", process_of(dying), "died"});
}

// ---- In a part without the rank that keeps the table -------------------------------------------------------------

// Returns the results of `body` in a subgroup of ranks 1 and 2, after rank 0 has died.
std::vector<std::string> in_part_without_rank_0(const std::function<std::string(Group &)> &body,
                                                std::string *dead)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int rank : {1, 2})
        ranks.push_back(member(rank, port.number(), [&](Group &group) {
            const Ref<Group> part = group.split(1, 0);
            group.run({}, false);
            try {
                group.run({}, false);
            } catch (const Error &) {  // rank 0 has died
            }
            return body(*part);
        }));
    RankProcess dying = member(0, port.number(), [](Group &group) -> std::string {
        group.split(0, 0);
        group.run({}, false);  // the other ranks have made their subgroups
        raise(SIGKILL);
        return "";
    });
    *dead = process_of(dying);
    return results(ranks);
}

std::string told_by(const std::function<void()> &call)
{
    try {
        call();
        return "nothing";
    } catch (const Error &error) {
        return std::string(status_name(error.status())) + " " + error.what() + "\n";
    }
}

TEST(Deaths, APartTellsWhatItCannotDoWithoutRankZeroAndGoesOn)
{
    std::string dead;
    const auto told = in_part_without_rank_0(
        [](Group &part) {
            std::string text = told_by([&] { (void)part.split(0, 0); });
            text += told_by([&] { part.monitored_barrier(5); });
            part.run({}, false);
            const int64_t shape[] = {5};
            (void)part.empty(shape, YOKE_F32, open_device("cpu"));
            const Ref<Group> smaller = part.shrink(10);
            (void)smaller->split(0, 0);
            smaller->monitored_barrier(10);
            return text + format("and %d ranks went on", smaller->size());
        },
        &dead);
    for (const std::string &text : told) {
        expect_parts(text, {"YOKE_E_COMM split: rank 0 (host", dead, "died", "shrink",
                            "YOKE_E_COMM monitored_barrier: rank 0 (host", "and 2 ranks went on"});
        EXPECT_EQ(text, told[0]);
    }
}

// Rank 1 of the subgroup learns that rank 0 gave the subgroup up, although ranks cannot agree.
TEST(Deaths, APartWithoutRankZeroStillEndsForAll)
{
    std::string dead;
    const auto told = in_part_without_rank_0(
        [](Group &part) {
            if (part.rank() == 0) part.abort("enough");
            return told_by([&] { part.run({}, false); });
        },
        &dead);
    expect_parts(told[0], {"YOKE_E_CANCELLED", "rank 0 (host", "enough"});
    expect_parts(told[1], {"YOKE_E_COMM barrier: rank 0 (host", dead,
                           "died; then the connection to rank 0 (host"});
}

}  // namespace
}  // namespace yoke
