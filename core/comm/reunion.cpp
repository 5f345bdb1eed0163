#include "core/comm/reunion.h"

#include "core/base/entropy.h"
#include "core/base/error.h"
#include "core/base/store_client.h"
#include "core/base/store_hash.h"
#include "core/base/text.h"
#include "core/comm/comers.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <sstream>

namespace yoke {

// ---- What the leader says ---------------------------------------------------------------------------------------

namespace {

constexpr const char *kWord = "word";

// The key in its leader's store of a rank that follows.
std::string here(int32_t rank)
{
    return format("here/%d", rank);
}

// Who is there, or that a lower rank leads.
struct Word {
    std::optional<int32_t> leader;
    uint64_t number = 0;  // of the new group
    std::vector<int32_t> ranks;

    std::string encode() const
    {
        if (leader) return format("see %d", *leader);
        std::string text = std::to_string(number);
        for (const int32_t each : ranks) text += format(" %d", each);
        return text;
    }
    static Word decode(const std::string &text)
    {
        Word word;
        std::istringstream in(text);
        int32_t rank = 0;
        if (text.starts_with("see ")) {
            in.ignore(4) >> rank;
            word.leader = rank;
            return word;
        }
        in >> word.number;
        while (in >> rank) word.ranks.push_back(rank);
        return word;
    }
};

// The members of the group that the word is of, without a store.
Members members_of(const Members &former, const Word &word)
{
    const auto own = std::ranges::find(word.ranks, former.rank);
    if (own == word.ranks.end())
        fail(
            YOKE_E_COMM,
            "shrink: %s came too late: the other ranks have gone on without it, as a group of %zu; give a longer timeout",
            describe(former.self()).c_str(), word.ranks.size());
    Members made;
    made.number = word.number;
    made.rank = static_cast<int32_t>(own - word.ranks.begin());
    for (const int32_t each : word.ranks) {
        made.ranks.push_back(former.ranks[static_cast<size_t>(each)]);
        made.ranks.back().rank = static_cast<int32_t>(made.ranks.size()) - 1;
        made.ranks.back().size = static_cast<int32_t>(word.ranks.size());
    }
    made.met_as = word.ranks;
    return made;
}

// ---- Processes --------------------------------------------------------------------------------------------------

// The others have gone on: no rank that is found gone meanwhile changes that.
class TooLate final : public Error {
public:
    using Error::Error;
};

class Reunion {
public:
    Reunion(const Members &of, const ReunionPorts &ports, Deadline deadline, Deadline end);
    Members run();

private:
    struct Leader {
        std::shared_ptr<ClientStore> store;
        std::shared_ptr<Watcher> watcher;
    };

    PeerOptions options(PeerObserver observer) const;
    StoreConnection reach(int32_t rank, double most_s, const std::shared_ptr<Watcher> &watcher);
    std::optional<Leader> find(int32_t rank, Deadline until);
    std::optional<Members> follow_a_lower();
    std::optional<Members> follow(int32_t rank, Deadline until);
    Deadline until_late() const;
    void join(const Leader &leader) const;
    void hear_of_followers() const;
    Word hear(int32_t &rank, Leader &leader);
    std::set<int32_t> followers() const;
    std::optional<Members> lead();
    bool has_all_but_gone();
    Members complete(Members made, std::shared_ptr<Store> store,
                     std::shared_ptr<Watcher> watcher) const;
    [[noreturn]] void fail_late(const StoreConnection &tried) const;
    const Arrival &peer(int32_t rank) const { return of_.ranks[static_cast<size_t>(rank)]; }

    const Members &of_;
    const ReunionPorts &ports_;
    const Deadline deadline_, end_;  // for ranks to come, and in all
    const std::shared_ptr<Watcher> watcher_ = std::make_shared<Watcher>();
    const std::shared_ptr<Comers> comers_ = std::make_shared<Comers>(watcher_);
    const std::shared_ptr<StoreServer> server_;
    std::set<int32_t> gone_;
};

Reunion::Reunion(const Members &of, const ReunionPorts &ports, Deadline deadline, Deadline end)
    : of_(of),
      ports_(ports),
      deadline_(deadline),
      end_(end),
      server_(std::make_shared<StoreServer>(
          ports.listening(),
          options([comers = comers_](const PeerEvent &event) { comers->tell(event); })))
{
}

PeerOptions Reunion::options(PeerObserver observer) const
{
    PeerOptions made;
    made.cookie = "shrink " + ports_.secret();
    made.rank = of_.rank;
    made.size = of_.size();
    made.silence_s = configured_silence();
    made.observer = std::move(observer);
    made.about = describe_process(of_.self());
    return made;
}

StoreConnection Reunion::reach(int32_t rank, double most_s, const std::shared_ptr<Watcher> &watcher)
{
    // Each rank's connection to another one is that to "rank 0".
    const auto tell = [watcher, rank](PeerEvent event) {
        event.rank = rank;
        watcher->tell(event);
    };
    const Deadline soon = deadline_.within(most_s);
    StoreConnection tried = connect_store(ports_.address(peer(rank), soon), options(tell), soon);
    const bool is_free = tried.outcome == StoreConnection::kNobody && tried.error == ECONNREFUSED;
    // Others have the port since its process has ended.
    if (is_free || tried.outcome == StoreConnection::kOtherJob) gone_.insert(rank);
    if (tried.outcome == StoreConnection::kComplete) fail_late(tried);
    return tried;
}

void Reunion::fail_late(const StoreConnection &tried) const
{
    throw TooLate(
        YOKE_E_COMM,
        format(
            "shrink: %s came too late: the other ranks have gone on without it, says %s; give a longer timeout",
            describe(of_.self()).c_str(), tried.why.c_str()));
}

// A rank that found another at the very end has a moment to follow it.
Deadline Reunion::until_late() const
{
    constexpr double kLeast = 0.3;
    return Deadline::after(std::max(kLeast, deadline_.remaining_s()));
}

// Nothing where it has gone, or has not answered so long.
std::optional<Reunion::Leader> Reunion::find(int32_t rank, Deadline until)
{
    constexpr double kPause = 0.02;
    while (!gone_.contains(rank)) {
        const auto watcher = std::make_shared<Watcher>();
        StoreConnection tried = reach(rank, until.remaining_s(), watcher);
        if (tried.outcome == StoreConnection::kConnected)
            return Leader{std::move(tried.store), watcher};
        if (until.has_passed() || deadline_.has_passed()) break;
        sleep_until(deadline_.within(kPause));
    }
    return {};
}

void Reunion::join(const Leader &leader) const
{
    leader.store->set(here(of_.rank), "", end_);
}

// From one leader to a lower one, until one says who is there. Raises as the connection does.
Word Reunion::hear(int32_t &rank, Leader &leader)
{
    constexpr double kPause = 0.02;
    for (;;) {
        Word word = Word::decode(leader.store->get(kWord, end_));
        if (!word.leader) return word;
        if (std::optional<Leader> lower = find(*word.leader, until_late())) {
            rank = *word.leader;
            leader = std::move(*lower);
            join(leader);
            server_->table()->set(kWord, Word{rank, 0, {}}.encode(), Deadline::after(0));
        } else {
            sleep_until(end_.within(kPause));
        }
        if (end_.has_passed())
            fail(YOKE_E_TIMEOUT, "shrink: %s says that %s leads, which this rank cannot reach",
                 describe(peer(rank)).c_str(), describe(peer(*word.leader)).c_str());
    }
}

// Nothing where that rank does not lead, as it has gone.
std::optional<Members> Reunion::follow(int32_t rank, Deadline until)
{
    std::optional<Leader> leader = find(rank, until);
    if (!leader) return {};
    const std::shared_ptr<HashStore> &table = server_->table();
    table->set(kWord, Word{rank, 0, {}}.encode(), Deadline::after(0));
    Word word;
    try {
        join(*leader);
        word = hear(rank, *leader);
    } catch (const TooLate &) {
        throw;
    } catch (const Error &error) {
        if (error.status() != YOKE_E_COMM) throw;
        gone_.insert(rank);
        table->remove(kWord, Deadline::after(0));
        return {};
    }
    server_->close_to_newcomers();
    return complete(members_of(of_, word), leader->store, leader->watcher);
}

// A lower rank that does not answer yet may still come: one between that does answer is followed meanwhile, as it says
// who leads in the end. Nothing where all lower ones have gone, or have not come in time.
std::optional<Members> Reunion::follow_a_lower()
{
    constexpr double kFirstTry = 0.25;
    const Deadline until = until_late();
    for (double most_s = kFirstTry;; most_s *= 2) {
        bool has_gone = true;
        for (int32_t each = 0; each < of_.rank; ++each) {
            if (std::optional<Members> made = follow(each, until.within(most_s))) return made;
            has_gone = has_gone && gone_.contains(each);
        }
        if (has_gone || until.has_passed() || deadline_.has_passed()) return {};
    }
}

// A rank may have given up the connection by which it came, and come again: it is there when it has said so.
std::set<int32_t> Reunion::followers() const
{
    std::set<int32_t> found = comers_->there();
    std::erase_if(found, [this](int32_t each) { return !server_->table()->has(here(each)); });
    return found;
}

void Reunion::hear_of_followers() const
{
    const auto tell = [comers = std::weak_ptr(comers_)](const std::string &) {
        if (const auto each = comers.lock()) each->look_again();
    };
    for (int32_t each = of_.rank + 1; each < of_.size(); ++each)
        (void)server_->table()->when_set(here(each), tell);
}

// Whether all above this rank have come or gone.
bool Reunion::has_all_but_gone()
{
    constexpr double kToAnswer = 0.05;
    const std::set<int32_t> following = followers();
    bool has_all = true;
    for (int32_t each = of_.rank + 1; each < of_.size(); ++each) {
        if (following.contains(each) || gone_.contains(each)) continue;
        (void)reach(each, kToAnswer, std::make_shared<Watcher>());
        has_all = has_all && gone_.contains(each);
    }
    return has_all;
}

// Nothing where a lower rank has come to life, which leads.
std::optional<Members> Reunion::lead()
{
    constexpr std::chrono::duration<double> kPause{0.05};
    for (;;) {
        const std::set<int32_t> there = comers_->there();
        const bool is_led =
            std::ranges::any_of(there, [&](int32_t each) { return each < of_.rank; });
        if (is_led && deadline_.has_passed())
            fail(YOKE_E_TIMEOUT, "shrink: %s leads, which this rank (%s) cannot reach",
                 describe(peer(*there.begin())).c_str(), describe_process(of_.self()).c_str());
        if (is_led) return {};
        if (has_all_but_gone() || deadline_.has_passed()) break;
        comers_->wait(kPause);
    }
    server_->close_to_newcomers();
    Word word;
    word.number = unguessable_number();
    word.ranks = {of_.rank};
    for (const int32_t each : followers())
        if (each > of_.rank) word.ranks.push_back(each);
    server_->table()->set(kWord, word.encode(), Deadline::after(0));
    return complete(members_of(of_, word), server_->table(), watcher_);
}

Members Reunion::complete(Members made, std::shared_ptr<Store> store,
                          std::shared_ptr<Watcher> watcher) const
{
    Rendezvous met;
    met.rank = made.rank;
    met.size = made.size();
    met.arrivals = made.ranks;
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

Members Reunion::run()
{
    hear_of_followers();
    for (;;) {
        if (std::optional<Members> made = follow_a_lower()) return std::move(*made);
        if (std::optional<Members> made = lead()) return std::move(*made);
    }
}

}  // namespace

Members reunite_processes(const Members &of, const ReunionPorts &ports, Deadline deadline,
                          Deadline end)
{
    return Reunion(of, ports, deadline, end).run();
}

// ---- Threads ----------------------------------------------------------------------------------------------------

Members reunite_threads(const Members &of, int attempt, Deadline deadline)
{
    PrefixStore store(of.store, format("shrink/%d", attempt));
    const Deadline at_once = Deadline::after(0);
    Store::Keys all;
    for (int32_t each = 0; each < of.size(); ++each) all.push_back(format("here/%d", each));
    store.set(all[static_cast<size_t>(of.rank)], "", at_once);
    try {
        store.wait(all, deadline);
    } catch (const Error &error) {
        if (error.status() != YOKE_E_TIMEOUT) throw;
    }
    Word word;
    word.number = unguessable_number();
    for (int32_t each = 0; each < of.size(); ++each)
        if (store.try_get(all[static_cast<size_t>(each)], at_once)) word.ranks.push_back(each);
    word = Word::decode(store.set_once(kWord, word.encode(), at_once));
    Members made = members_of(of, word);
    made.store = std::make_shared<PrefixStore>(of.store, format("shrunk/%d", attempt));
    return made;
}

}  // namespace yoke
