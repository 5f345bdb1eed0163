// Common suite for every kind of store: promises of the calls, by threads and by processes.
#include "core/store/store.h"

#include "core/store/store_client.h"
#include "core/store/store_file.h"
#include "core/store/store_hash.h"
#include "core/store/store_server.h"
#include "tests/core/base/soon.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"

#include <unistd.h>

#include <fstream>
#include <thread>

namespace yoke {
namespace {

using test::expect_error;
using test::soon;

// Stores of a job: each rank opens a store.
class Kind {
public:
    virtual ~Kind() = default;
    virtual std::shared_ptr<Store> open(int32_t rank) = 0;
};

class HashKind final : public Kind {
public:
    std::shared_ptr<Store> open(int32_t) override { return store_; }

private:
    std::shared_ptr<Store> store_ = std::make_shared<HashStore>();
};

class TcpKind final : public Kind {
public:
    std::shared_ptr<Store> open(int32_t rank) override
    {
        if (rank == 0) return server_->table();
        PeerOptions options;
        options.cookie = "job";
        options.rank = next_++;
        options.about = "host a, process " + std::to_string(options.rank);
        SocketAddress address = server_->address();
        auto connection = connect_store(address, options, soon());
        EXPECT_EQ(connection.outcome, StoreConnection::kConnected) << connection.why;
        return connection.store;
    }

private:
    static PeerOptions options()
    {
        PeerOptions options;
        options.cookie = "job";
        options.size = 100;
        options.about = "host a, process 0";
        return options;
    }
    std::shared_ptr<StoreServer> server_ =
        StoreServer::open(Socket::listen(resolve("127.0.0.1", 0, soon()).front()), options());
    std::atomic<int32_t> next_{1};
};

class PrefixKind final : public Kind {
public:
    std::shared_ptr<Store> open(int32_t rank) override
    {
        return std::make_shared<PrefixStore>(of_.open(rank), "group");
    }

private:
    TcpKind of_;
};

class FileKind final : public Kind {
public:
    std::shared_ptr<Store> open(int32_t) override { return open_file_store(path_, "job", soon()); }

private:
    const std::string path_ = testing::TempDir() + "yoke-store-" + std::to_string(getpid());
};

TEST(FileStore, LeavesFilesOfOthersAlone)
{
    const std::string path = testing::TempDir() + "yoke-foreign-" + std::to_string(getpid());
    std::ofstream(path) << "of somebody's";
    expect_error(YOKE_E_IO, {path.c_str(), "has data that Yoke did not write"},
                 [&] { (void)open_file_store(path, "job", soon()); });
    std::string kept;
    std::getline(std::ifstream(path), kept);
    EXPECT_EQ(kept, "of somebody's");
    unlink(path.c_str());
}

TEST(HashStore, KeysWithoutValuesTakeRoomToo)
{
    HashStore store;
    const std::string rest(900, 'k');
    const auto fill = [&] {
        for (int i = 0; i < 300000; ++i) store.set(std::to_string(i) + rest, "", soon());
    };
    expect_error(YOKE_E_VALUE, {"at most 268435456 fit", "remove keys"}, fill);
    store.set("0" + rest, "", soon());  // an existing key
    store.remove("0" + rest, soon());
    store.remove("1" + rest, soon());
    store.set("other", "", soon());
}

template <class T>
class EveryStore : public testing::Test {
protected:
    T kind_;
    std::shared_ptr<Store> first_ = kind_.open(0), second_ = kind_.open(1);
};

using Kinds = testing::Types<HashKind, TcpKind, PrefixKind, FileKind>;
TYPED_TEST_SUITE(EveryStore, Kinds);

TYPED_TEST(EveryStore, AValueThatOneRankSetsIsReadByAll)
{
    const std::string bytes("a\0b\xff", 4);
    this->first_->set("key", bytes, soon());
    EXPECT_EQ(this->second_->get("key", soon()), bytes);
    this->second_->set("key", "", soon());
    EXPECT_EQ(this->first_->get("key", soon()), "");
    EXPECT_EQ(this->second_->try_get("other", soon()), std::nullopt);
    EXPECT_EQ(this->second_->try_get("key", soon()), "");
}

TYPED_TEST(EveryStore, AGetWaitsUntilTheKeyIsThere)
{
    std::thread late([&] { this->second_->set("late", "here", soon()); });
    EXPECT_EQ(this->first_->get("late", soon()), "here");
    late.join();
    std::thread later([&] { this->first_->set("later", "there", soon()); });
    EXPECT_EQ(this->second_->get("later", soon()), "there");
    later.join();
}

TYPED_TEST(EveryStore, AWaitThatComesTooLateNamesTheKeysThatAreMissing)
{
    this->first_->set("there", "1", soon());
    for (Store *store : {this->first_.get(), this->second_.get()}) {
        expect_error(YOKE_E_TIMEOUT, {"missing'", "absent'", "0.01 s"}, [&] {
            store->wait({"there", "missing", "absent"}, Deadline::after(0.01));
        });
        expect_error(YOKE_E_TIMEOUT, {"missing'"},
                     [&] { store->get("missing", Deadline::after(0)); });
    }
}

TYPED_TEST(EveryStore, AddCountsAcrossRanksAndGivesTheSum)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            Store &store = i % 2 ? *this->second_ : *this->first_;
            for (int n = 0; n < 25; ++n) store.add("count", 2, soon());
        });
    for (std::thread &thread : threads) thread.join();
    EXPECT_EQ(this->second_->add("count", -1, soon()), 199);
    EXPECT_EQ(this->first_->get("count", soon()), "199");
    this->first_->set("word", "text", soon());
    expect_error(YOKE_E_VALUE, {"word"}, [&] { this->second_->add("word", 1, soon()); });
}

TYPED_TEST(EveryStore, OfSeveralThatSetOnceOneIsTheFirstAndAllKnowIt)
{
    std::string values[2];
    std::thread other([&] { values[1] = this->second_->set_once("first", "b", soon()); });
    values[0] = this->first_->set_once("first", "a", soon());
    other.join();
    EXPECT_EQ(values[0], values[1]);
    EXPECT_EQ(this->second_->get("first", soon()), values[0]);
}

TYPED_TEST(EveryStore, ARemovedKeyIsNotThere)
{
    this->first_->set("key", "1", soon());
    this->second_->remove("key", soon());
    this->second_->remove("key", soon());
    EXPECT_EQ(this->first_->try_get("key", soon()), std::nullopt);
}

TYPED_TEST(EveryStore, OfRemovedKeysNoneIsThere)
{
    for (const char *key : {"one", "two", "three"}) this->first_->set(key, "1", soon());
    this->second_->remove_all({"one", "never", "two"}, soon());
    this->second_->remove_all({}, soon());
    EXPECT_EQ(this->first_->try_get("one", soon()), std::nullopt);
    EXPECT_EQ(this->first_->try_get("two", soon()), std::nullopt);
    EXPECT_EQ(this->first_->try_get("three", soon()), "1");
}

TYPED_TEST(EveryStore, AnAbortEndsWaitsOfThisStoreAndLaterCallsOfIt)
{
    std::thread aborter([&] { this->second_->abort(YOKE_E_COMM, "rank 3 died"); });
    expect_error(YOKE_E_COMM, {"rank 3 died"}, [&] { this->second_->get("never", soon()); });
    aborter.join();
    expect_error(YOKE_E_COMM, {"rank 3 died"}, [&] { this->second_->set("key", "1", soon()); });
}

TYPED_TEST(EveryStore, AKeyThatIsTooLongOrEmptyIsRefused)
{
    expect_error(YOKE_E_VALUE, {"set", "0 bytes"}, [&] { this->second_->set("", "1", soon()); });
    expect_error(YOKE_E_VALUE, {"get", "1025"},
                 [&] { this->second_->get(std::string(1025, 'k'), soon()); });
}

TYPED_TEST(EveryStore, ALargeValueComesWhole)
{
    const std::string large(Store::kLongestValue, 'x');
    this->second_->set("large", large, soon());
    EXPECT_EQ(this->first_->get("large", soon()), large);
    EXPECT_EQ(this->second_->get("large", soon()), large);
    expect_error(YOKE_E_VALUE, {"'large'", "16777217"},
                 [&] { this->first_->set("large", large + "y", soon()); });
}

TYPED_TEST(EveryStore, AGatherGivesEachRankTheTextsOfAllInTheirOrder)
{
    std::vector<std::string> seen[3];
    std::vector<std::thread> ranks;
    for (int32_t rank = 0; rank < 3; ++rank)
        ranks.emplace_back([&, rank] {
            const auto store = rank == 0   ? this->first_
                               : rank == 1 ? this->second_
                                           : this->kind_.open(rank);
            seen[rank] = all_gather(*store, "names", rank, 3,
                                    std::string(1, static_cast<char>('a' + rank)), soon());
        });
    for (std::thread &rank : ranks) rank.join();
    for (const auto &all : seen) EXPECT_EQ(all, (std::vector<std::string>{"a", "b", "c"}));
}

TYPED_TEST(EveryStore, WhoAsksToBeCalledIsCalledOnceTheKeyIsThere)
{
    std::atomic<int> calls{0};
    if (!this->second_->when_set("cause",
                                 [&](const std::string &value) { calls += value == "why"; }))
        return;
    // Requests of a store arrive in order: after this answer, the earlier request has arrived.
    EXPECT_EQ(this->second_->try_get("cause", soon()), std::nullopt);
    this->first_->set("cause", "why", soon());
    this->first_->set("cause", "another", soon());
    while (calls == 0) std::this_thread::yield();
    this->first_->when_set("cause", [&](const std::string &value) { calls += value == "another"; });
    while (calls == 1) std::this_thread::yield();
}

TYPED_TEST(EveryStore, WhoHasBeenForgottenIsNotCalled)
{
    auto held = std::make_shared<std::atomic<int>>(0);
    const auto count = [held](const std::string &) { ++*held; };
    const std::optional<uint64_t> number = this->second_->when_set("cause", count);
    if (!number) return;
    EXPECT_NE(*number, 0u);
    EXPECT_TRUE(this->second_->when_set("cause", count));
    this->second_->forget("cause", *number);
    this->second_->forget("cause", *number);
    EXPECT_EQ(held.use_count(), 3);  // the other callback's, and 2 in this function
    EXPECT_EQ(this->second_->try_get("cause", soon()), std::nullopt);
    this->first_->set("cause", "why", soon());
    EXPECT_EQ(this->second_->get("cause", soon()), "why");
    while (*held == 0) std::this_thread::yield();
    EXPECT_EQ(*held, 1);
}

}  // namespace
}  // namespace yoke
