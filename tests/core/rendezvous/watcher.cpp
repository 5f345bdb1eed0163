// Ranks that have gone, and reports of the other ranks about them: core/rendezvous/watcher.cpp,
// core/comm/peer_news.cpp.
#include "tests/core/comm/threads.h"

namespace yoke::test {
namespace {

Members here(int32_t size)
{
    Members members;
    for (int32_t rank = 0; rank < size; ++rank) {
        RankInfo info;
        info.rank = rank;
        info.host = "here";
        info.address = "127.0.0.1";
        members.ranks.push_back(info);
        members.met_as.push_back(rank);
    }
    return members;
}

std::shared_ptr<StoreServer> listening()
{
    return StoreServer::open(Socket::listen(SocketAddress::any(AF_INET, 0)), PeerOptions());
}

// Rank 0 publishes the cause, and receives the cause in the same thread.
TEST(Group, IsNotMadeWithOneThatHasDied)
{
    Members members = here(2);
    const auto met = std::make_shared<Rendezvous>();
    met->server = listening();
    members.met = met;
    members.store = std::make_shared<PrefixStore>(met->server->table(), "group");
    members.watcher = std::make_shared<Watcher>();
    members.watcher->tell({PeerEvent::kEnded, 1, 0, "", ""});
    expect_error(YOKE_E_COMM, {"init_all: rank 1 (host here", "died while the group was created"},
                 [&] { (void)Group::make(members, {}, Deadline::after(20), kCall); });
    members.watcher->tell({PeerEvent::kJoined, 1, 0, "", ""});
    members.watcher->tell({PeerEvent::kSilent, 1, 31, "", ""});
    members.store = std::make_shared<PrefixStore>(met->server->table(), "another group");
    expect_error(YOKE_E_COMM, {"init_all: rank 1 (host here", "sent no heartbeat for 31 s"},
                 [&] { (void)Group::make(members, {}, Deadline::after(20), kCall); });
}

TEST(Group, TellsThatItsMakingFailedAsNoCallOfIts)
{
    constexpr double kShort = 0.3;
    Members members = here(2);
    members.store = std::make_shared<HashStore>();
    members.store->set(gather_keys("init/0", 2)[1], "cpu\n\n", Deadline::after(20));
    for (const char *told : {"init/1", "init/2"})  // rank 1's address and connection: none
        members.store->set(gather_keys(told, 2)[1], "", Deadline::after(20));
    try {
        (void)Group::make(members, {}, Deadline::after(kShort), kCall);
        ADD_FAILURE() << "it was made without rank 1";
    } catch (const Error &error) {
        const std::string text = error.what();
        EXPECT_EQ(text.find(kCall), 0u) << text;
        EXPECT_NE(text.find("the creation of the group"), text.npos) << text;
        EXPECT_EQ(text.find("barrier"), text.npos) << text;
    }
}

// Each has a measure of the silence of its own.
TEST(Group, AgreesOnASilenceThatSeveralRanksWereToldOf)
{
    const auto server = listening();
    std::vector<std::string> told(3);
    std::vector<std::future<void>> ranks;
    for (const int32_t rank : {1, 2})
        ranks.push_back(std::async(std::launch::async, [&, rank] {
            Members members = here(4);
            members.rank = rank;
            PeerOptions options;
            options.rank = rank;
            const StoreConnection reached =
                connect_store(server->address(), options, Deadline::after(20));
            const auto met = std::make_shared<Rendezvous>();
            met->store = reached.store;
            members.met = met;
            members.store = std::make_shared<PrefixStore>(reached.store, "group");
            members.watcher = std::make_shared<Watcher>();
            members.watcher->tell({PeerEvent::kSilent, 3, 30. + rank, "", ""});
            try {
                (void)Group::make(members, {}, Deadline::after(20), kCall);
            } catch (const Error &error) {
                told[static_cast<size_t>(rank)] = error.what();
            }
        }));
    for (auto &each : ranks) each.get();
    EXPECT_NE(told[1].find("rank 3 (host here"), told[1].npos) << told[1];
    EXPECT_EQ(told[1], told[2]);
}

}  // namespace
}  // namespace yoke::test
