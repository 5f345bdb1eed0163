// Rendezvous of processes, and every way in which a rendezvous fails: the error of each living process.
#include "core/rendezvous/rendezvous.h"

#include "core/base/log.h"
#include "core/rendezvous/ports.h"
#include "core/store/store_client.h"
#include "core/store/store_file.h"
#include "tests/core/comm/ranks.h"
#include "tests/core/fresh_process.h"

namespace yoke {
namespace {

using test::expect_parts;
using test::options_of;
using test::Port;
using test::process_of;
using test::RankProcess;
using test::results;
using test::start;
using test::tell;
using test::Variables;
using test::variables_of;

constexpr double kShortWait = 0.5;  // timeout of calls expected to time out

Variables joined(Variables variables, const Variables &more)
{
    for (const auto &[name, value] : more) variables[name] = value;
    return variables;
}

TEST(Rendezvous, FourVariablesBringRanksTogether)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int rank : {2, 1, 0, 3})
        ranks.push_back(start(options_of(variables_of(rank, 4, port.number()))));
    for (const std::string &text : results(ranks))
        EXPECT_EQ(text, "0:0/4@127.0.0.1 1:1/4@127.0.0.1 2:2/4@127.0.0.1 3:3/4@127.0.0.1 0123");
}

TEST(Rendezvous, RanksMeetByIpv6)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1})
        ranks.push_back(start(
            options_of(joined(variables_of(rank, 2, port.number()), {{"MASTER_ADDR", "::1"}}))));
    for (const std::string &text : results(ranks)) EXPECT_EQ(text, "0:0/2@::1 1:1/2@::1 01");
}

TEST(Rendezvous, ALauncherThatKnowsLocalRanksIsBelieved)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1})
        ranks.push_back(
            start(options_of(joined(variables_of(rank, 2, port.number()),
                                    {{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}}))));
    for (const std::string &text : results(ranks))
        EXPECT_EQ(text, "0:0/1@127.0.0.1 1:0/1@127.0.0.1 01");
}

// Rank 0 warns, and all go on.
TEST(Rendezvous, UnlikeDevicesAreToldOnce)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1, 2, 3})
        ranks.push_back(RankProcess([&, rank] {
            static std::string logged;
            set_log_callback(
                [](void *, int32_t level, const char *text) {
                    if (level <= static_cast<int32_t>(LogLevel::kWarn)) logged += text;
                },
                nullptr, nullptr);
            RendezvousOptions options = options_of(variables_of(rank, 4, port.number()));
            options.device =
                rank < 2 ? "cuda: NVIDIA H200, driver 580.1" : "cuda: NVIDIA L4, driver 570.2";
            (void)tell(meet(options));
            return logged;
        }));
    const std::vector<std::string> told = results(ranks);
    expect_parts(told[0], {"rank 0 (host", "H200, driver 580.1 (2 of 4 ranks)", "rank 2 (host",
                           "L4, driver 570.2 (2 ranks)"});
    EXPECT_EQ(told[1] + told[2] + told[3], "");
}

TEST(Rendezvous, OneRankAloneNeedsNobody)
{
    EXPECT_NE(start(options_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}})).result().find("0:0/1@"),
              std::string::npos);
}

Variables torchrun(int rank, int size, uint16_t port, const std::string &run)
{
    return joined(variables_of(rank, size, port), {{"TORCHELASTIC_RUN_ID", run},
                                                   {"TORCHELASTIC_RESTART_COUNT", "0"},
                                                   {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
}

std::string run_id(const char *name)
{
    return std::string(name) + std::to_string(getpid());
}

TEST(Rendezvous, TorchrunsOwnPortIsLeftToIt)
{
    const Socket agent = Socket::listen(SocketAddress::any(AF_INET6, 0));
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1})
        ranks.push_back(start(options_of(torchrun(rank, 2, agent.local().port(), run_id("a")))));
    for (const std::string &text : results(ranks))
        EXPECT_EQ(text, "0:0/2@127.0.0.1 1:1/2@127.0.0.1 01");
}

TEST(Rendezvous, AnotherJobAtACandidatePortIsPassedBy)
{
    const Port port;
    const std::string run = run_id("b");
    const std::string job =
        format("torchrun %s at 127.0.0.1:%u start 0", run.c_str(), port.number());
    // Another job serves at the first candidate port. If a further program has this port, the program does as well,
    // because it sends no greeting.
    PeerOptions other;
    other.cookie = "another job";
    const std::vector<uint16_t> ports = candidate_ports(job);
    Socket first = Socket::listen(SocketAddress::any(AF_INET6, ports[0]));
    std::shared_ptr<StoreServer> server;
    if (first.present()) server = StoreServer::open(std::move(first), other);
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1})
        ranks.push_back(start(options_of(torchrun(rank, 2, port.number(), run))));
    for (const std::string &text : results(ranks))
        EXPECT_EQ(text, "0:0/2@127.0.0.1 1:1/2@127.0.0.1 01");
}

TEST(Rendezvous, ARankThatIsMissingIsNamedOnAllThatLive)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1, 3})
        ranks.push_back(start(options_of(variables_of(rank, 4, port.number()), kShortWait)));
    const std::string first = process_of(ranks[0]), second = process_of(ranks[1]);
    for (const std::string &text : results(ranks))
        expect_parts(text, {"YOKE_E_TIMEOUT", "1 of 4 ranks did not arrive: 2;", "rank 0 (host",
                            first, "rank 1 (host", second});
}

TEST(Rendezvous, OfManyThatAreMissingTheFirstAreNamed)
{
    const Port port;
    expect_parts(start(options_of(variables_of(0, 65536, port.number()), kShortWait)).result(),
                 {"YOKE_E_TIMEOUT", "65535 of 65536 ranks did not arrive: 1, 2, 3,",
                  ", 16 and 65519 more; ranks that arrived: rank 0 (host"});
}

TEST(Rendezvous, WithoutRankZeroEachSaysWhereItLooked)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int rank : {1, 2})
        ranks.push_back(start(options_of(variables_of(rank, 3, port.number()), kShortWait)));
    const std::string place = "127.0.0.1:" + std::to_string(port.number());
    const std::string first = process_of(ranks[0]);
    const auto texts = results(ranks);
    expect_parts(texts[0],
                 {"YOKE_E_TIMEOUT", "rank 1", first, place + ": Connection refused", "0.5 s"});
    expect_parts(texts[1], {"YOKE_E_TIMEOUT", "rank 2", place});
}

TEST(Rendezvous, ARankThatIsThereTwiceIsNamedOnAll)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1, 1, 2})
        ranks.push_back(start(options_of(variables_of(rank, 4, port.number()))));
    const std::string first = process_of(ranks[1]), second = process_of(ranks[2]);
    for (const std::string &text : results(ranks))
        expect_parts(text, {"YOKE_E_COMM", "two processes have rank 1: host", first, second});
}

TEST(Rendezvous, RankZeroTwiceIsNamedOnAll)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 0, 1})
        ranks.push_back(start(options_of(variables_of(rank, 3, port.number()))));
    const std::string first = process_of(ranks[0]), second = process_of(ranks[1]);
    for (const std::string &text : results(ranks)) {
        expect_parts(text, {"YOKE_E_COMM", "two processes have rank 0: host", first, second});
        EXPECT_EQ(text.find("listens there"), std::string::npos) << text;
    }
}

std::string file_url(const char *name)
{
    return "file://" + testing::TempDir() + "yoke-meet-" + name + std::to_string(getpid());
}

RendezvousOptions by_file(const std::string &url, int rank, int size, double timeout_s = 20)
{
    RendezvousOptions options = options_of({}, timeout_s);
    options.arguments.init_method = url;
    options.arguments.rank = rank;
    options.arguments.size = size;
    return options;
}

TEST(Rendezvous, ARankThatIsNotBelowTheSizeIsNamedOnAll)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 5})
        ranks.push_back(start(options_of(variables_of(rank, 2, port.number()))));
    const std::string culprit = process_of(ranks[1]);
    const auto texts = results(ranks);
    expect_parts(texts[0], {"YOKE_E_COMM", "rank 5 (host", culprit, "the rank is 5 (RANK)",
                            "the size 2 (WORLD_SIZE)", "0 to 1"});
    expect_parts(texts[1], {"YOKE_E_VALUE", "the rank is 5 (RANK), and the size 2 (WORLD_SIZE)"});
}

TEST(Rendezvous, ARankThatIsNotBelowTheSizeFailsWithoutRankZeroToo)
{
    const Port port;
    for (const int size : {1, 2})
        expect_parts(start(options_of(variables_of(2, size, port.number()), 600)).result(),
                     {"YOKE_E_VALUE", "the rank is 2 (RANK)", "WORLD_SIZE"});
    expect_parts(start(by_file(file_url("c"), 3, 3, 600)).result(),
                 {"YOKE_E_VALUE", "the rank is 3 (the argument rank)", "0 to 2"});
}

TEST(Rendezvous, SizesThatDifferAreNamedOnAll)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int size : {2, 3})
        ranks.push_back(start(options_of(variables_of(size - 2, size, port.number()))));
    for (const std::string &text : results(ranks))
        expect_parts(text,
                     {"YOKE_E_COMM", "rank 0 (host", "2 ranks", "rank 1 (host", "a job of 3"});
}

TEST(Rendezvous, BuildsThatDifferAreNamedOnAll)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1}) {
        RendezvousOptions options = options_of(variables_of(rank, 2, port.number()));
        options.build = rank ? "Yoke 2" : "Yoke 1";
        ranks.push_back(start(options));
    }
    for (const std::string &text : results(ranks))
        expect_parts(text, {"YOKE_E_COMM", "runs Yoke 1, but rank 1 (host", "runs Yoke 2"});
}

TEST(Rendezvous, AnInterfaceThatIsAbsentOnOneRankIsNamedOnAll)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1})
        ranks.push_back(RankProcess([&] {
            if (rank == 1) setenv("YOKE_SOCKET_IFNAME", "nosuch", 1);
            return test::tell(meet(options_of(variables_of(rank, 2, port.number()))));
        }));
    const auto texts = results(ranks);
    expect_parts(texts[0], {"YOKE_E_COMM", "rank 1 (host", "YOKE_SOCKET_IFNAME is 'nosuch'", "lo"});
    expect_parts(texts[1], {"YOKE_E_VALUE", "YOKE_SOCKET_IFNAME is 'nosuch'"});
}

TEST(Rendezvous, AChosenInterfaceIsWhatPeersAreTold)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1})
        ranks.push_back(RankProcess([&] {
            setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
            return test::tell(meet(options_of(variables_of(rank, 2, port.number()))));
        }));
    for (const std::string &text : results(ranks))
        EXPECT_EQ(text, "0:0/2@127.0.0.1 1:1/2@127.0.0.1 01");
}

TEST(Rendezvous, APortThatAnotherProgramHasIsNamed)
{
    const Socket program = Socket::listen(SocketAddress::any(AF_INET6, 0));
    const uint16_t port = program.local().port();
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1})
        ranks.push_back(start(options_of(variables_of(rank, 2, port), kShortWait)));
    const std::string first = process_of(ranks[0]), second = process_of(ranks[1]);
    const auto texts = results(ranks);
    expect_parts(texts[0], {"YOKE_E_COMM", "rank 0 (host", first, "port " + std::to_string(port),
                            "Address already in use; another program listens there"});
    expect_parts(texts[1], {"YOKE_E_TIMEOUT", "rank 1 (host", second,
                            "127.0.0.1:" + std::to_string(port), "another program"});
}

TEST(Rendezvous, ASecondJobAtAPortIsToldWhoseItIsAndTheFirstGoesOn)
{
    const Port port;
    int hold[2], met[2];
    ASSERT_EQ(pipe(hold) | pipe(met), 0);
    const auto first_job = [&](int rank) {
        return RankProcess([&, rank] {
            const Rendezvous job = meet(options_of(variables_of(rank, 2, port.number())));
            char byte = 0;
            close(hold[1]);
            // Waits until the second job has failed.
            if (write(met[1], &byte, 1) < 0 || read(hold[0], &byte, 1) < 0) abort();
            return test::tell(job);
        });
    };
    std::vector<RankProcess> first, second;
    first.push_back(first_job(0));
    first.push_back(first_job(1));
    const std::string holder = process_of(first[0]);
    char bytes[2];
    ASSERT_EQ(read(met[0], bytes, 1), 1);
    ASSERT_EQ(read(met[0], bytes, 1), 1);
    for (const int rank : {0, 1})
        second.push_back(start(options_of(variables_of(rank, 2, port.number()), kShortWait)));
    const auto texts = results(second);
    expect_parts(texts[0], {"YOKE_E_COMM", "rank 0 of another job listens there: host", holder,
                            "have all arrived"});
    expect_parts(texts[1],
                 {"YOKE_E_TIMEOUT", "rank 1", "rank 0 of another job listens there, host", holder});
    for (const int end : {hold[0], hold[1], met[0], met[1]}) close(end);
    for (const std::string &text : results(first))
        EXPECT_EQ(text, "0:0/2@127.0.0.1 1:1/2@127.0.0.1 01");
}

TEST(Rendezvous, AHostThatCannotBeFoundIsNamed)
{
    const auto variables =
        joined(variables_of(1, 2, 29500), {{"MASTER_ADDR", "no such host.invalid"}});
    expect_parts(start(options_of(variables, kShortWait)).result(),
                 {"YOKE_E_TIMEOUT", "'no such host.invalid'", "MASTER_ADDR"});
}

TEST(Rendezvous, RanksMeetInAFileAgainAndAgain)
{
    const std::string url = file_url("a");
    for (int run = 0; run < 2; ++run) {
        std::vector<RankProcess> ranks;
        for (const int rank : {0, 1, 2})
            ranks.push_back(RankProcess([&] {
                std::string text;
                const auto held = open_file_store(url.substr(7), " start 0", Deadline::after(20));
                for (int init = 0; init < 2; ++init) {
                    const std::string told = test::tell(meet(by_file(url, rank, 3)));
                    text += told.substr(told.rfind(' '));
                }
                return text;
            }));
        for (const std::string &text : results(ranks)) EXPECT_EQ(text, " 012 012");
    }
}

TEST(Rendezvous, InAFileARankThatIsMissingIsNamedEvenIfItIsRankZero)
{
    std::vector<RankProcess> ranks;
    for (const int rank : {1, 2})
        ranks.push_back(start(by_file(file_url("b"), rank, 3, kShortWait)));
    for (const std::string &text : results(ranks))
        expect_parts(text, {"YOKE_E_TIMEOUT", "1 of 3 ranks did not arrive: 0;", "rank 1 (host",
                            "rank 2 (host"});
}

}  // namespace
}  // namespace yoke
