// Ways to rank 0 that lead nowhere, and rank 0 of another start of the job.
#include "core/rendezvous/reach.h"

#include "core/rendezvous/ports.h"
#include "tests/core/comm/ranks.h"
#include "tests/core/comm/warnings.h"

namespace yoke {
namespace {

using test::expect_parts;
using test::options_of;
using test::Port;
using test::process_of;
using test::RankProcess;
using test::start;
using test::Variables;

// Accepts a single connection, and answers no further connection.
class Deaf {
public:
    Deaf(const char *host, uint16_t port)
        : listening_(Socket::adopt([] { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }))
    {
        const SocketAddress address = resolve(host, port, Deadline::after(20))[0];
        is_deaf_ = bind(listening_.fd(), address.get(), address.length) == 0 &&
                   listen(listening_.fd(), 0) == 0;
        if (is_deaf_) only_ = Socket::connect(address, Deadline::after(20));
    }

private:
    Socket listening_, only_;
    bool is_deaf_ = false;
};

TEST(Reach, AnAddressThatDoesNotAnswerCostsOneAttempt)
{
    Environment environment;
    environment.hosts = {"127.0.0.2", "127.0.0.1"};
    const std::string job = "deaf " + std::to_string(getpid());
    std::vector<std::unique_ptr<Deaf>> deaf;
    std::shared_ptr<StoreServer> server;
    PeerOptions options;
    options.cookie = job;
    options.size = 2;
    for (const uint16_t port : candidate_ports(job)) {
        deaf.push_back(std::make_unique<Deaf>("127.0.0.2", port));
        Socket listening = Socket::listen(resolve("127.0.0.1", port, Deadline::after(20))[0]);
        if (!server && listening.present())
            server = StoreServer::open(std::move(listening), options);
    }
    ASSERT_TRUE(server);
    PeerOptions other = options;
    other.rank = 1;
    const Deadline four_attempts = Deadline::after(12);
    EXPECT_TRUE(reach_rank_0(environment, job, other, four_attempts));
    EXPECT_FALSE(four_attempts.has_passed());
}

// If the deadline passes during a further question, the earlier answer stands.
TEST(Reach, WhatTheResolverSaidOfAHostStands)
{
    Environment environment;
    environment.hosts = {"no..host"};
    environment.port = 1;
    PeerOptions options;
    options.rank = 1;
    try {
        (void)reach_rank_0(environment, "job", options, Deadline::after(0.4));
        ADD_FAILURE() << "reach_rank_0 returned, though the host does not exist";
    } catch (const Error &error) {
        EXPECT_EQ(std::string(error.what()).find("sent no greeting"), std::string::npos)
            << error.what();
        expect_parts(error.what(), {"'no..host': the host 'no..host' cannot be found: "});
    }
}

// Closes so many connections amid their greeting, then the port.
std::string warnings_of_a_port_that_closes(int times)
{
    const test::Warnings warnings;
    Socket listening = Socket::listen(resolve("127.0.0.1", 0, Deadline::after(20))[0]);
    Environment environment;
    environment.hosts = {"127.0.0.1"};
    environment.port = listening.local().port();
    std::thread closing([&] {
        while (times > 0) times -= listening.accept().present();
        listening.close();
    });
    PeerOptions options;
    options.rank = 1;
    EXPECT_THROW(reach_rank_0(environment, "job", options, Deadline::after(0.3)), Error);
    closing.join();
    return warnings.text();
}

// A single close may come from the former rank 0, which releases its port.
TEST(Reach, AnotherProgramIsWarnedOfWhenItClosesTwice)
{
    EXPECT_EQ(warnings_of_a_port_that_closes(1), "");
    expect_parts(warnings_of_a_port_that_closes(2),
                 {"another program listens there", "tries again"});
}

// No machine has an address in 192.0.2.0/24.
TEST(Reach, RankZeroThatNobodyFindsIsToldThatItsAddressIsNotHere)
{
    const Port port;
    Variables elsewhere = test::variables_of(0, 2, port.number()), here = elsewhere;
    elsewhere["MASTER_ADDR"] = "192.0.2.1";
    expect_parts(start(options_of(elsewhere, 0.2)).result(),
                 {"YOKE_E_TIMEOUT", "1 of 2 ranks did not arrive: 1;", "'192.0.2.1' (MASTER_ADDR)",
                  "but this host (", "has another address"});
    EXPECT_EQ(start(options_of(here, 0.2)).result().find("no network"), std::string::npos);
}

Variables of_start(int start, int rank, uint16_t port)
{
    Variables variables = test::variables_of(rank, 2, port);
    variables["YOKE_RUN_ID"] = "run";
    variables["TORCHELASTIC_RESTART_COUNT"] = std::to_string(start);
    return variables;
}

// The launcher has started rank 1 again, and the older rank 0 waits for rank 1.
TEST(Reach, AnOlderStartOfRankZeroEndsWhenANewerOneComes)
{
    const Port port;
    RankProcess newer = start(options_of(of_start(1, 1, port.number())));
    RankProcess older = start(options_of(of_start(0, 0, port.number())));
    const std::string process = process_of(newer);
    expect_parts(older.result(), {"YOKE_E_COMM", "rank 1 (host", process, "start 1 of the job",
                                  "start 0", "the older process ends"});
    RankProcess again = start(options_of(of_start(1, 0, port.number())));
    EXPECT_EQ(again.result(), "0:0/2@127.0.0.1 1:1/2@127.0.0.1 01");
    EXPECT_EQ(newer.result(), "0:0/2@127.0.0.1 1:1/2@127.0.0.1 01");
}

TEST(Reach, ARankOfAnOlderStartEndsAtOnceAndTheNewerOneMeets)
{
    const Port port;
    RankProcess zero = start(options_of(of_start(1, 0, port.number())));
    const std::string process = process_of(zero);
    expect_parts(start(options_of(of_start(0, 1, port.number()))).result(),
                 {"YOKE_E_COMM", "rank 0 (host", process, "start 1 of the job", "start 0"});
    EXPECT_EQ(start(options_of(of_start(1, 1, port.number()))).result(),
              "0:0/2@127.0.0.1 1:1/2@127.0.0.1 01");
    zero.result();
}

// Returns the reports of ranks 0 and 1; rank 2 connects, and then calls `go`.
std::vector<std::string> told_of_a_third(const std::function<void()> &go)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1})
        ranks.push_back(start(options_of(test::variables_of(rank, 3, port.number()))));
    RankProcess third([&]() -> std::string {
        Environment environment;
        environment.hosts = {"127.0.0.1"};
        environment.port = port.number();
        PeerOptions options;
        options.cookie = job_cookie("");
        options.rank = 2;
        options.about = "host x, process 7";
        const auto store = reach_rank_0(environment, "", options, Deadline::after(20));
        go();
        return "";
    });
    return test::results(ranks);
}

TEST(Reach, ARankThatDiesBeforeAllAreThereIsNamedAtOnce)
{
    for (const std::string &text : told_of_a_third([] { _exit(0); }))
        expect_parts(text, {"YOKE_E_COMM", "rank 2 (host x, process 7) died", "closed"});
}

TEST(Reach, ARankThatLeavesBeforeAllAreThereIsNamedAtOnce)
{
    for (const std::string &text : told_of_a_third([] {}))
        EXPECT_EQ(
            text,
            "YOKE_E_COMM comm.init: rank 2 (host x, process 7) left before all ranks arrived");
}

}  // namespace
}  // namespace yoke
