#include "core/rendezvous/shrink_rendezvous.h"

#include "core/base/entropy.h"
#include "core/base/error.h"
#include "core/rendezvous/joined.h"
#include "core/rendezvous/shrink_word.h"
#include "core/store/store_client.h"
#include "core/store/store_hash.h"
#include "core/store/store_refusal.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <utility>

namespace yoke {

namespace {

// Error of a shrink after the other ranks have gone on, or cannot. A rank lost meanwhile changes nothing.
class Over final : public Error {
public:
    using Error::Error;
};

class ShrinkRendezvous {
public:
    ShrinkRendezvous(const Members &of, const ShrinkPorts &ports, Deadline deadline, Deadline end);
    Members run();
    // Publishes to the followers why there is no new group; wait_for_readers() lets them read the reason.
    void set_refusal(const std::string &why) const;
    void wait_for_readers() const;

private:
    struct Leader {
        std::shared_ptr<ClientStore> store;
        std::shared_ptr<Watcher> watcher;
    };

    void check() const;
    [[noreturn]] void refuse(const std::string &why) const;
    StoreConnection reach(int32_t rank, Deadline soon, const std::shared_ptr<Watcher> &watcher);
    std::optional<Leader> find(int32_t rank, Deadline until);
    std::optional<Members> follow_a_lower();
    std::optional<Members> follow(int32_t rank, Deadline until);
    Deadline until_late() const;
    void join(const Leader &leader) const;
    void hear_of_followers() const;
    Word read(int32_t rank, Store &store) const;
    Word hear(int32_t &rank, Leader &leader);
    std::set<int32_t> followers() const;
    std::optional<Members> lead();
    bool has_all_but_gone();
    Members complete(Members made, std::shared_ptr<Store> store,
                     std::shared_ptr<Watcher> watcher) const;
    void note(int32_t rank, const StoreConnection &tried);
    void check_former();
    [[noreturn]] void raise_too_late(const std::string &told_by) const;
    const RankInfo &peer(int32_t rank) const { return of_.ranks[static_cast<size_t>(rank)]; }

    const Members &of_;
    const ShrinkPorts &ports_;
    const Deadline deadline_, end_;  // for ranks to come, and in all
    const std::shared_ptr<Watcher> watcher_ = std::make_shared<Watcher>();
    const std::shared_ptr<Joined> joined_ = std::make_shared<Joined>(watcher_);
    const std::shared_ptr<StoreServer> server_;
    std::set<int32_t> gone_;
    std::map<int32_t, std::string> former_;  // by rank: the rank's description
};

ShrinkRendezvous::ShrinkRendezvous(const Members &of, const ShrinkPorts &ports, Deadline deadline,
                                   Deadline end)
    : of_(of),
      ports_(ports),
      deadline_(deadline),
      end_(end),
      server_(StoreServer::open(ports.listening(),
                                ports.peer_options(of, [joined = joined_](const PeerEvent &event) {
                                    joined->tell(event);
                                })))
{
}

// Raises if a resource of this rank's store is missing. If a joined rank cannot go on, refuses for all followers.
void ShrinkRendezvous::check() const
{
    const std::string lack = joined_->lack(), refusal = joined_->refusal();
    if (!lack.empty()) throw Error(YOKE_E_IO, lack);
    if (!refusal.empty()) refuse(refusal);
}

void ShrinkRendezvous::set_refusal(const std::string &why) const
{
    server_->table()->set(kWord, Word{{}, why, 0, {}}.encode(), Deadline::after(0));
}

void ShrinkRendezvous::wait_for_readers() const
{
    constexpr double kToRead = 0.5;
    server_->wait_until_left(Deadline::after(kToRead));
}

// Publishes the refusal to this rank's followers, waits a moment for them to read it, and raises YOKE_E_COMM.
void ShrinkRendezvous::refuse(const std::string &why) const
{
    set_refusal(why);
    wait_for_readers();
    throw Over(YOKE_E_COMM, "shrink: " + why);
}

StoreConnection ShrinkRendezvous::reach(int32_t rank, Deadline soon,
                                        const std::shared_ptr<Watcher> &watcher)
{
    // Events of the connection name "rank 0" for the peer, so the peer's rank is put in.
    const auto tell = [watcher, rank](PeerEvent event) {
        event.rank = rank;
        watcher->tell(event);
    };
    StoreConnection tried =
        connect_store(ports_.address(peer(rank), soon), ports_.peer_options(of_, tell), soon);
    if (is_shortage(tried.error))
        fail(YOKE_E_IO, "the rank cannot open a connection to rank %d: %s; check ulimit -n", rank,
             tried.why.c_str());
    note(rank, tried);
    return tried;
}

// Notes how a rank answered, and raises for kComplete: the other ranks have gone on. kFormer means that ranks of an
// earlier, failed attempt are still leaving that rank's server, or that the others have gone on.
void ShrinkRendezvous::note(int32_t rank, const StoreConnection &tried)
{
    const bool is_free = tried.outcome == StoreConnection::kNobody && tried.error == ECONNREFUSED;
    // Another job has the port, so the rank's process has ended.
    const bool has_gone = is_free || tried.outcome == StoreConnection::kOtherJob;
    if (has_gone) gone_.insert(rank);
    if (has_gone || tried.outcome == StoreConnection::kConnected) former_.erase(rank);
    if (tried.outcome == StoreConnection::kFormer) former_[rank] = tried.why;
    if (tried.outcome == StoreConnection::kComplete) raise_too_late(tried.why);
}

// Asks again the ranks that were leaving an earlier attempt, once no more ranks can join. Raises YOKE_E_COMM if such
// a rank still answers so without having joined: this rank is too late. All these ranks share one time limit.
void ShrinkRendezvous::check_former()
{
    constexpr double kLeast = 0.3, kMost = 1;
    const Deadline most = Deadline::after(std::clamp(end_.remaining_s() / 2, kLeast, kMost));
    std::map<int32_t, std::string> asked = std::exchange(former_, {});
    for (const int32_t each : followers()) asked.erase(each);
    for (size_t left = asked.size(); const auto &[rank, told] : asked) {
        const Deadline soon = most.within(most.remaining_s() / static_cast<double>(left--));
        (void)reach(rank, soon, std::make_shared<Watcher>());
        if (former_.contains(rank)) raise_too_late(told);
    }
}

void ShrinkRendezvous::raise_too_late(const std::string &told_by) const
{
    refuse(format(
        "%s called shrink too late: the other ranks went on without it, according to %s; use a longer timeout",
        describe(of_.self()).c_str(), told_by.c_str()));
}

// Returns the deadline, but at least a moment from now, enough to follow a rank found at the very end.
Deadline ShrinkRendezvous::until_late() const
{
    constexpr double kLeast = 0.3;
    return Deadline::after(std::max(kLeast, deadline_.remaining_s()));
}

// Connects to the store of a possible leader, and tries until the time is over. Returns nullopt if the rank has gone
// or does not answer in time.
std::optional<ShrinkRendezvous::Leader> ShrinkRendezvous::find(int32_t rank, Deadline until)
{
    constexpr double kPause = 0.02;
    while (!gone_.contains(rank)) {
        check();
        const auto watcher = std::make_shared<Watcher>();
        StoreConnection tried = reach(rank, end_.within(until.remaining_s()), watcher);
        if (tried.outcome == StoreConnection::kConnected)
            return Leader{std::move(tried.store), watcher};
        if (until.has_passed()) break;
        sleep_until(until.within(kPause));
    }
    return {};
}

void ShrinkRendezvous::join(const Leader &leader) const
{
    leader.store->set(here(of_.rank), "", end_);
}

Word ShrinkRendezvous::read(int32_t rank, Store &store) const
try {
    return Word::decode(store.get(kWord, end_));
} catch (const Error &error) {
    if (error.status() != YOKE_E_TIMEOUT) throw;
    fail(
        YOKE_E_TIMEOUT,
        "shrink: the leader, %s, did not publish the present ranks in time; the leader is stopped, or has a longer timeout than this rank (%s): call shrink again, with the same timeout on all ranks",
        describe(peer(rank)).c_str(), describe_process(of_.self()).c_str());
}

// Returns the ranks of the new group, once a leader publishes them. Follows each leader to a lower leader, and sets
// `rank` and `leader` accordingly. Raises a leader's refusal, the errors of the connection, and YOKE_E_TIMEOUT.
Word ShrinkRendezvous::hear(int32_t &rank, Leader &leader)
{
    constexpr double kPause = 0.02;
    for (;;) {
        Word word = read(rank, *leader.store);
        if (!word.refusal.empty()) refuse(word.refusal);
        check();
        if (!word.leader) return word;
        if (std::optional<Leader> lower = find(*word.leader, until_late())) {
            rank = *word.leader;
            leader = std::move(*lower);
            join(leader);
            server_->table()->set(kWord, Word{rank, "", 0, {}}.encode(), Deadline::after(0));
        } else {
            if (deadline_.has_passed()) check_former();
            sleep_until(end_.within(kPause));
        }
        if (end_.has_passed())
            fail(YOKE_E_TIMEOUT,
                 "shrink: %s says that %s is the leader, but this rank cannot reach the leader",
                 describe(peer(rank)).c_str(), describe(peer(*word.leader)).c_str());
    }
}

// Follows a rank as leader and returns the members of the new group. Returns nullopt if the rank has gone and so does
// not lead, or does not answer in time.
std::optional<Members> ShrinkRendezvous::follow(int32_t rank, Deadline until)
{
    std::optional<Leader> leader = find(rank, until);
    if (!leader) return {};
    const std::shared_ptr<HashStore> &table = server_->table();
    table->set(kWord, Word{rank, "", 0, {}}.encode(), Deadline::after(0));
    Word word;
    try {
        join(*leader);
        word = hear(rank, *leader);
    } catch (const Over &) {
        throw;
    } catch (const Error &error) {
        if (error.status() != YOKE_E_COMM) throw;
        gone_.insert(rank);
        table->remove(kWord, Deadline::after(0));
        return {};
    }
    server_->close_to_newcomers();
    return complete(members_from(of_, word), leader->store, leader->watcher);
}

// Follows the lowest live rank below this rank, and returns the new group's members. A rank that does not answer yet
// may still come. Meanwhile this rank follows a rank in between that answers, since it names the leader in the end.
// The first round is short, however many lower ranks there are. Returns nullopt if all lower ranks have gone or are
// late.
std::optional<Members> ShrinkRendezvous::follow_a_lower()
{
    constexpr double kLeastTry = 0.02, kFirstTry = 0.25;
    const Deadline until = until_late();
    const double share_s = until.remaining_s() / (4. * std::max(1, of_.rank));
    for (double most_s = std::clamp(share_s, kLeastTry, kFirstTry);; most_s *= 2) {
        bool has_gone = true;
        for (int32_t each = 0; each < of_.rank; ++each) {
            if (std::optional<Members> made = follow(each, until.within(most_s))) return made;
            has_gone = has_gone && gone_.contains(each);
        }
        if (has_gone || until.has_passed() || deadline_.has_passed()) return {};
    }
}

// Returns the followers of this rank. A rank may close its first connection and join again, so a rank counts only
// once its key is in the store.
std::set<int32_t> ShrinkRendezvous::followers() const
{
    std::set<int32_t> found = joined_->there();
    std::erase_if(found, [this](int32_t each) { return !server_->table()->has(here(each)); });
    return found;
}

void ShrinkRendezvous::hear_of_followers() const
{
    const auto tell = [joined = std::weak_ptr(joined_)](const std::string &) {
        if (const auto each = joined.lock()) each->look_again();
    };
    for (int32_t each = of_.rank + 1; each < of_.size(); ++each)
        (void)server_->table()->when_set(here(each), tell);
}

// Returns whether each higher rank has joined or gone. Tries to reach the others, to see which of them have gone.
bool ShrinkRendezvous::has_all_but_gone()
{
    constexpr double kToAnswer = 0.05;
    const std::set<int32_t> following = followers();
    bool has_all = true;
    for (int32_t each = of_.rank + 1; each < of_.size(); ++each) {
        if (following.contains(each) || gone_.contains(each)) continue;
        (void)reach(each, deadline_.within(kToAnswer), std::make_shared<Watcher>());
        has_all = has_all && gone_.contains(each);
    }
    return has_all;
}

// Leads: waits until each higher rank has joined or gone, or until the deadline. Then publishes the ranks that are
// there, and returns the members. Returns nullopt if a lower rank has joined, which then leads.
std::optional<Members> ShrinkRendezvous::lead()
{
    constexpr std::chrono::duration<double> kPause{0.05};
    for (;;) {
        check();
        const std::set<int32_t> there = joined_->there();
        const bool is_led =
            std::ranges::any_of(there, [&](int32_t each) { return each < of_.rank; });
        if (is_led && deadline_.has_passed())
            fail(YOKE_E_TIMEOUT, "shrink: %s is the leader, but this rank (%s) cannot reach it",
                 describe(peer(*there.begin())).c_str(), describe_process(of_.self()).c_str());
        if (is_led) return {};
        if (has_all_but_gone() || deadline_.has_passed()) break;
        joined_->wait(kPause);
    }
    check();
    check_former();
    server_->close_to_newcomers();
    Word word;
    word.number = unguessable_number();
    word.ranks = {of_.rank};
    for (const int32_t each : followers())
        if (each > of_.rank) word.ranks.push_back(each);
    server_->table()->set(kWord, word.encode(), Deadline::after(0));
    return complete(members_from(of_, word), server_->table(), watcher_);
}

Members ShrinkRendezvous::complete(Members made, std::shared_ptr<Store> store,
                                   std::shared_ptr<Watcher> watcher) const
{
    Rendezvous met;
    met.rank = made.rank;
    met.size = made.size();
    met.ranks = made.ranks;
    met.store = store;
    met.source = "shrink";
    met.server_rank = made.met_as[0];
    (store == server_->table() ? met.server : met.doorkeeper) = server_;
    if (met.server)
        watcher->tell_in(store);
    else
        Watcher::listen(watcher, store);
    made.met = hold(std::move(met));
    made.watcher = std::move(watcher);
    made.store = std::make_shared<PrefixStore>(std::move(store), "group");
    return made;
}

Members ShrinkRendezvous::run()
{
    hear_of_followers();
    for (;;) {
        if (std::optional<Members> made = follow_a_lower()) return std::move(*made);
        if (std::optional<Members> made = lead()) return std::move(*made);
    }
}

// Notifies the other ranks that a resource is missing here, before they notice the end of this rank: ranks that wait
// already, and ranks that come later. Then raises the error.
[[noreturn]] void fail_short(const Members &of, const ShrinkPorts &ports,
                             const ShrinkRendezvous *attempt, const Error &error, Deadline deadline)
{
    const std::string why = describe(of.self()) + ": " + error.what();
    std::vector<SocketAddress> others;
    for (const RankInfo &each : of.ranks)
        if (each.rank != of.rank) others.push_back(ports.address(each, deadline));
    if (attempt) attempt->set_refusal(why);
    call_off_each(others, ports.peer_options(of, {}), error.what(), deadline);
    if (attempt) attempt->wait_for_readers();
    fail_in("shrink", error.status(), "%s", why.c_str());
}

}  // namespace

Members reunite_processes(const Members &of, const ShrinkPorts &ports, Deadline deadline,
                          Deadline end)
{
    std::optional<ShrinkRendezvous> attempt;
    const auto known = [&] { return attempt ? &*attempt : nullptr; };
    try {
        attempt.emplace(of, ports, deadline, end);
        return attempt->run();
    } catch (const Error &error) {
        if (error.status() != YOKE_E_IO && error.status() != YOKE_E_OOM) throw;
        fail_short(of, ports, known(), error, end);
    } catch (const std::bad_alloc &) {
        fail_short(of, ports, known(), Error(YOKE_E_OOM, kNoMemoryText), end);
    }
}

}  // namespace yoke
