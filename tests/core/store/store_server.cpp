// Server among foreign clients, connections that end or miss heartbeats, and effects of forks.
#include "core/store/store_server.h"

#include "core/base/log.h"
#include "core/store/store_client.h"
#include "core/store/store_wire.h"
#include "tests/core/base/soon.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"

#include <signal.h>

#include <condition_variable>
#include <cstring>
#include <future>
#include <thread>

namespace yoke {
namespace {

using test::expect_error;
using test::soon;

// Reported events of connections, with waits.
class Events {
public:
    PeerObserver observer()
    {
        return [this](const PeerEvent &event) {
            const std::lock_guard lock(mutex_);
            all_.push_back(event);
            came_.notify_all();
        };
    }
    PeerEvent await(PeerEvent::Kind kind)
    {
        std::unique_lock lock(mutex_);
        PeerEvent found{};
        const bool is_there = came_.wait_until(lock, soon().at(), [&] {
            for (const PeerEvent &event : all_)
                if (event.kind == kind) return found = event, true;
            return false;
        });
        EXPECT_TRUE(is_there) << "no event " << kind;
        return found;
    }
    bool has(PeerEvent::Kind kind)
    {
        const std::lock_guard lock(mutex_);
        for (const PeerEvent &event : all_)
            if (event.kind == kind) return true;
        return false;
    }

private:
    std::mutex mutex_;
    std::condition_variable came_;
    std::vector<PeerEvent> all_;
};

PeerOptions options_of(int32_t rank, const PeerObserver &observer = {}, double silence_s = 30)
{
    PeerOptions options;
    options.cookie = "job";
    options.rank = rank;
    options.size = 4;
    options.silence_s = silence_s;
    options.greeting_s = 0.05;
    options.observer = observer;
    options.about = "host a, process " + std::to_string(rank);
    return options;
}

struct Served {
    explicit Served(double silence_s = 30)
        : server(StoreServer::open(Socket::listen(resolve("127.0.0.1", 0, soon())[0]),
                                   options_of(0, events.observer(), silence_s))),
          address(server->address())
    {
    }
    StoreConnection connect(const PeerOptions &options)
    {
        return connect_store(address, options, soon());
    }
    Events events;
    std::shared_ptr<StoreServer> server;
    SocketAddress address;
};

// Waits until the server has closed the socket.
void await_end(const Socket &socket)
{
    char byte = 0;
    while (receive_all(socket, &byte, 1, soon())) {
    }
}

TEST(StoreServer, StrangersAreDroppedAndRanksServed)
{
    Served served;
    const auto rank = served.connect(options_of(1));
    ASSERT_EQ(rank.outcome, StoreConnection::kConnected) << rank.why;
    const std::string huge = std::string("\xff\xff\xff\x7f", 4) + std::string(12, '\0');
    for (const std::string &bytes : {std::string(48, 'x'), std::string("GET / HTTP/1.1\r\n\r\n"),
                                     huge, std::string(48, '\0')}) {
        const Socket stranger = Socket::connect(served.address, soon());
        EXPECT_TRUE(send_all(stranger, bytes, soon()));
        await_end(stranger);
    }
    Socket::connect(served.address, soon()).close();
    const Socket slow = Socket::connect(served.address, soon());
    EXPECT_TRUE(send_all(slow, "x", soon()));
    await_end(slow);  // the greeting did not come in time
    rank.store->set("key", "value", soon());
    EXPECT_EQ(served.server->table()->get("key", soon()), "value");
    EXPECT_FALSE(served.events.has(PeerEvent::kEnded));
}

// Ranks of a job that waits come four times a second each.
TEST(StoreServer, StrangersThatComeAgainAndAgainAreLoggedOnce)
{
    std::atomic<int> lines{0};
    const auto count = [](void *user, int32_t, const char *text) {
        *static_cast<std::atomic<int> *>(user) += strstr(text, "belongs to another job") != nullptr;
    };
    const int64_t id = add_log_callback(count, &lines, nullptr);
    {
        Served served;
        PeerOptions other = options_of(1);
        other.cookie = "another";
        for (int time = 0; time < 20; ++time)
            EXPECT_EQ(served.connect(other).outcome, StoreConnection::kOtherJob);
    }
    remove_log_callback(id);
    EXPECT_EQ(lines, 1);
}

TEST(StoreServer, OtherJobsAndOtherProtocolsAreToldWhy)
{
    Served served;
    PeerOptions other = options_of(1);
    other.cookie = "another";
    EXPECT_EQ(served.connect(other).outcome, StoreConnection::kOtherJob);
    EXPECT_EQ(served.connect(other).why, "host a, process 0");
    const auto first = served.connect(options_of(1));
    PeerOptions twice = options_of(1);
    twice.about = "host b, process 9";
    const auto refused = served.connect(twice);
    EXPECT_EQ(refused.outcome, StoreConnection::kRefused);
    EXPECT_NE(
        refused.why.find("two processes have rank 1: host a, process 1 and host b, process 9"),
        std::string::npos)
        << refused.why;
    EXPECT_EQ(served.events.await(PeerEvent::kRefused).rank, 1);
    first.store->set("key", "value", soon());  // the first rank goes on
    served.server->close_to_newcomers();
    EXPECT_EQ(served.connect(options_of(2)).outcome, StoreConnection::kComplete);
}

TEST(StoreServer, NobodyAndOtherProgramsAreToldApart)
{
    Socket listening = Socket::listen(resolve("127.0.0.1", 0, soon())[0]);
    const SocketAddress address = listening.local();
    EXPECT_EQ(connect_store(address, options_of(1), Deadline::after(0.05)).outcome,
              StoreConnection::kNoStore);
    listening.close();
    EXPECT_EQ(connect_store(address, options_of(1), soon()).why, "Connection refused");
}

// Watches as many keys as a job has groups, in turn.
TEST(StoreServer, WhatIsWatchedTakesNoPlaceOfCallsAndIsForgotten)
{
    Served served;
    const auto rank = served.connect(options_of(1));
    for (int group = 0; group < 70000; ++group) {
        const auto number = rank.store->when_set("cause", [](const std::string &) {});
        rank.store->forget("cause", number.value_or(0));
        if (group % 1000 == 0) rank.store->set("turn", "", soon());  // waits for the server
    }
    for (int group = 0; group < 5000; ++group)
        EXPECT_TRUE(rank.store->when_set("cause", [](const std::string &) {}));
    rank.store->set("turn", "", soon());
    expect_error(YOKE_E_TIMEOUT, {"no rank set 'never'"},
                 [&] { rank.store->get("never", Deadline::after(0.01)); });
    const auto told = std::make_shared<std::promise<std::string>>();
    rank.store->when_set("cause", [told](const std::string &why) { told->set_value(why); });
    served.server->table()->set("cause", "why", soon());
    EXPECT_EQ(told->get_future().get(), "why");
}

TEST(StoreServer, MoreThanFitsIntoAnAnswerIsRefusedAndTheRankServed)
{
    Served served;
    const auto rank = served.connect(options_of(1));
    rank.store->set("large", std::string(size_t{8} << 20, 'x'), soon());
    const Store::Keys keys(9, "large");
    expect_error(YOKE_E_VALUE, {"9 keys", "fewer keys"},
                 [&] { rank.store->get_all(keys, soon()); });
    EXPECT_EQ(rank.store->get_all(Store::Keys(3, "large"), soon()).size(), 3u);
    // A waiting call is answered when its last key is set, by any thread.
    std::thread setter([&] {
        while (!served.server->table()->try_get("asked", soon())) std::this_thread::yield();
        served.server->table()->set("last", "", soon());
    });
    Store::Keys waited = keys;
    waited.push_back("last");
    rank.store->set("asked", "", soon());
    expect_error(YOKE_E_VALUE, {"10 keys", "fewer keys"},
                 [&] { rank.store->get_all(waited, soon()); });
    setter.join();
    expect_error(YOKE_E_VALUE, {"70000 keys", "65536"},
                 [&] { rank.store->wait(Store::Keys(70000, "k"), soon()); });
}

// The requests come from a foreign client; Yoke's own clients do not send them.
TEST(StoreServer, KeysWithoutEndAreRefused)
{
    Served served;
    const Socket rank = Socket::connect(served.address, soon());
    const auto request = [&](wire::Writer writer) {
        EXPECT_TRUE(send_all(rank, std::move(writer).take(), soon()));
        wire::Header head{};
        EXPECT_TRUE(receive_all(rank, reinterpret_cast<char *>(&head), sizeof head, soon()));
        std::string body(head.bytes, '\0');
        EXPECT_TRUE(receive_all(rank, body.data(), body.size(), soon()));
        return head.kind;
    };
    const PeerOptions options = options_of(1);
    EXPECT_EQ(request(std::move(wire::Writer(wire::Kind::kHello, wire::kMagic)
                                    .number(wire::kVersion)
                                    .number(options.rank)
                                    .text(options.cookie)
                                    .text(options.about)
                                    .number(options.start))),
              wire::Kind::kWelcome);
    wire::Writer many(wire::Kind::kWait, 1);
    for (int i = 0; i < 70000; ++i) many.text("");
    EXPECT_EQ(request(std::move(many)), wire::Kind::kFailed);
    // Together, too.
    wire::Writer long_keys(wire::Kind::kWait);
    for (int i = 0; i < 15000; ++i) long_keys.text(std::string(Store::kLongestKey, 'k'));
    const std::string frame = std::move(long_keys).take();
    for (uint64_t number = 2; number < 7; ++number) {
        std::string next = frame;
        memcpy(next.data() + offsetof(wire::Header, number), &number, sizeof number);
        EXPECT_TRUE(send_all(rank, next, soon()));
    }
    wire::Header head{};
    EXPECT_TRUE(receive_all(rank, reinterpret_cast<char *>(&head), sizeof head, soon()));
    EXPECT_EQ(head.kind, wire::Kind::kFailed);
    EXPECT_EQ(head.number, 6u);
}

TEST(StoreServer, AFarewellIsNoDeath)
{
    Served served;
    served.connect(options_of(1)).store.reset();
    EXPECT_EQ(served.events.await(PeerEvent::kLeft).rank, 1);
    EXPECT_TRUE(served.server->wait_until_left(soon(), 1));
    EXPECT_FALSE(served.events.has(PeerEvent::kEnded));
}

TEST(StoreServer, WhoIsExcusedIsNotWaitedFor)
{
    Served served;
    const StoreConnection first = served.connect(options_of(1));
    StoreConnection second = served.connect(options_of(2));
    served.server->excuse({1});
    EXPECT_FALSE(served.server->wait_until_left(Deadline::after(0)));
    second.store.reset();
    EXPECT_TRUE(served.server->wait_until_left(soon()));
    served.server->expect_all();
    EXPECT_FALSE(served.server->wait_until_left(Deadline::after(0)));
}

TEST(StoreServer, ADeathIsToldWithWhoItWas)
{
    Served served;
    EXPECT_TRUE(test::passes_in_child([&] {
        const auto rank = served.connect(options_of(3));
        EXPECT_EQ(rank.outcome, StoreConnection::kConnected) << rank.why;
        _exit(0);  // without a goodbye message
    }));
    const PeerEvent event = served.events.await(PeerEvent::kEnded);
    EXPECT_EQ(event.rank, 3);
    EXPECT_EQ(event.about, "host a, process 3");
}

TEST(StoreServer, TheEndOfRankZeroEndsWaitsAtOnceAndIsTold)
{
    Events events;
    auto served = std::make_unique<Served>();
    const auto rank = served->connect(options_of(1, events.observer()));
    std::thread end([&] { served.reset(); });
    expect_error(YOKE_E_COMM, {"rank 0 at 127.0.0.1", "left"},
                 [&] { rank.store->get("never", soon()); });
    end.join();
    EXPECT_EQ(events.await(PeerEvent::kLeft).rank, 0);
    expect_error(YOKE_E_COMM, {"has ended"}, [&] { rank.store->set("key", "1", soon()); });
}

// Clients end their connections at the goodbye message, some of them before the server releases these connections.
TEST(StoreServer, ItsEndIsNobodysDeath)
{
    for (int round = 0; round < 100; ++round) {
        Served served;
        std::vector<StoreConnection> ranks;
        for (int32_t rank = 1; rank < 4; ++rank) {
            ranks.push_back(served.connect(options_of(rank)));
            ASSERT_EQ(ranks.back().outcome, StoreConnection::kConnected) << ranks.back().why;
        }
        served.server.reset();
        ASSERT_FALSE(served.events.has(PeerEvent::kEnded)) << "in round " << round;
    }
}

TEST(StoreServer, AStoppedRankIsSilentAndIsHeardAgain)
{
    Served served(0.2);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        const auto rank = served.connect(options_of(2, {}, 0.2));
        rank.store->get("end", soon());
        _exit(0);
    }
    served.events.await(PeerEvent::kJoined);
    kill(child, SIGSTOP);
    const PeerEvent event = served.events.await(PeerEvent::kSilent);
    EXPECT_EQ(event.rank, 2);
    EXPECT_GT(event.silent_s, 0.2);
    kill(child, SIGCONT);
    served.events.await(PeerEvent::kHeard);
    served.server->table()->set("end", "", soon());
    waitpid(child, nullptr, 0);
}

TEST(StoreServer, AStoppedRankZeroIsSilentForTheOthers)
{
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        const Served served(0.2);
        const uint16_t port = served.address.port();
        if (write(ends[1], &port, sizeof port) < 0) _exit(1);
        served.server->table()->get("end", soon());
        _exit(0);
    }
    uint16_t port = 0;
    ASSERT_EQ(read(ends[0], &port, sizeof port), static_cast<ssize_t>(sizeof port));
    Events events;
    const auto rank = connect_store(resolve("127.0.0.1", port, soon())[0],
                                    options_of(1, events.observer(), 0.2), soon());
    kill(child, SIGSTOP);
    EXPECT_EQ(events.await(PeerEvent::kSilent).rank, 0);
    expect_error(YOKE_E_TIMEOUT, {"did not answer within 0.01 s"},
                 [&] { rank.store->get("x", Deadline::after(0.01)); });
    kill(child, SIGKILL);
    EXPECT_EQ(events.await(PeerEvent::kEnded).rank, 0);
    waitpid(child, nullptr, 0);
    close(ends[0]);
    close(ends[1]);
}

TEST(StoreServer, AForkedChildKeepsNoConnectionOpenAndMayNotUseIt)
{
    Served served;
    int told[2], ends[2];
    ASSERT_EQ(pipe(told) | pipe(ends), 0);
    const pid_t rank = fork();
    if (rank == 0) {
        const auto connected = served.connect(options_of(1));
        if (fork() == 0) {  // this child outlives the rank
            alarm(20);
            close(ends[1]);
            expect_error(YOKE_E_FORKED, {"forked"}, [&] { connected.store->get("key", soon()); });
            char result = testing::Test::HasFailure() ? 'n' : 'y';
            if (write(told[1], &result, 1) < 0 || read(ends[0], &result, 1) < 0) _exit(1);
        }
        _exit(0);
    }
    EXPECT_EQ(served.events.await(PeerEvent::kEnded).rank, 1);
    waitpid(rank, nullptr, 0);
    char result = 0;
    EXPECT_EQ(read(told[0], &result, 1), 1);
    EXPECT_EQ(result, 'y');
    for (const int end : {told[0], told[1], ends[0], ends[1]}) close(end);
}

}  // namespace
}  // namespace yoke
