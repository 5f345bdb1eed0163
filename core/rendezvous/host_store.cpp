#include "core/rendezvous/host_store.h"

#include "core/base/entropy.h"
#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/base/interrupt.h"
#include "core/base/text.h"
#include "core/rendezvous/init_call.h"
#include "core/rendezvous/interfaces.h"
#include "core/rendezvous/reach.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

namespace yoke {

namespace {

constexpr std::string_view kMark = "yoke 1";

// Returns addresses of this machine for ranks of other machines, the likely addresses first. Loopback serves ranks on
// the same machine.
std::vector<std::string> own_addresses()
{
    const std::vector<Interface> all = host_interfaces();
    const InterfaceChoice choice = InterfaceChoice::configured();
    const auto likely = InterfaceChoice::read("", "^docker,lo");
    std::vector<std::string> hosts, others;
    for (const Interface &one : choice.empty() ? all : choice.among(all))
        (likely.accepts(one.name) ? hosts : others).push_back(one.address.host());
    hosts.insert(hosts.end(), others.begin(), others.end());
    return hosts;
}

// Place of rank 0, published as "yoke 1 PORT SECRET HOST HOST".
struct StoreAddress {
    uint16_t port = 0;
    std::string secret;
    std::vector<std::string> hosts;

    static std::optional<StoreAddress> decode(std::string_view text)
    {
        if (text.substr(0, kMark.size()) != kMark) return std::nullopt;
        text.remove_prefix(kMark.size());
        std::vector<std::string> words;
        while (!text.empty()) {
            text.remove_prefix(1);  // a blank
            words.emplace_back(text.substr(0, text.find(' ')));
            text.remove_prefix(words.back().size());
        }
        const auto port = words.size() < 2 ? std::nullopt : parsed<uint16_t>(words[0]);
        if (!port) return std::nullopt;
        return StoreAddress{*port, words[1], {words.begin() + 2, words.end()}};
    }
};

[[noreturn]] void fail_without_network()
{
    fail_in(
        kInitCall, YOKE_E_COMM,
        "the host of rank 0 has no network, not even loopback, so no rank can reach it; bring a network up (ip link set lo up), or start the ranks on another host");
}

[[noreturn]] void raise_absent(const PeerOptions &self, Deadline deadline)
{
    fail_in(
        kInitCall, YOKE_E_TIMEOUT,
        "rank %d (%s) found no address of rank 0 in the given store within %g s; check whether rank 0 runs, and uses the same store",
        self.rank, self.about.c_str(), deadline.given_s());
}

StoreAddress read(HostStore &store, const std::string &key, const PeerOptions &self,
                  Deadline deadline)
try {
    const std::string text = store.get(key, deadline);
    if (std::optional<StoreAddress> found = StoreAddress::decode(text)) {
        if (found->hosts.empty()) fail_without_network();
        return *found;
    }
    // The text of another version of Yoke may hold a secret, so the error hides this text.
    const bool is_yokes = text.starts_with(kMark.substr(0, kMark.find(' ')));
    fail_in(
        kInitCall, YOKE_E_COMM,
        "the given store has '%.60s' at the key '%s', which Yoke did not write; give the job its own store",
        is_yokes ? "yoke ..." : text.c_str(), key.c_str());
} catch (const Error &error) {
    if (error.status() != YOKE_E_TIMEOUT) throw;
    raise_absent(self, deadline);
}

// Rendezvous of this process's ranks. If a rank uses the store again, the rank waits for another rank 0.
struct Past {
    Mutex mutex{LockRank::kOther};
    std::set<std::pair<std::string, int32_t>> met;  // secret and rank

    bool has(const std::string &secret, int32_t rank)
    {
        const std::lock_guard lock(mutex);
        return met.contains({secret, rank});
    }
    void add(const std::string &secret, int32_t rank)
    {
        const std::lock_guard lock(mutex);
        met.emplace(secret, rank);
    }
};
Past &past = immortal<Past>();

[[noreturn]] void fail_unreached(const StoreAddress &found, const PeerOptions &self,
                                 Deadline deadline)
{
    fail_in(
        kInitCall, YOKE_E_TIMEOUT,
        "rank %d (%s) did not reach rank 0 within %g s; according to the given store, rank 0 listens at port %u of %s: rank 0 has not started, or its network cannot be reached",
        self.rank, self.about.c_str(), deadline.given_s(), found.port, found.hosts[0].c_str());
}

// Connects to rank 0 at the published addresses. Returns null if no rank 0 with this secret answers by the deadline.
std::shared_ptr<ClientStore> try_to_reach(const StoreAddress &found, PeerOptions self,
                                          Deadline deadline)
try {
    Environment there;
    there.hosts = found.hosts;
    there.port = found.port;
    self.cookie = job_cookie(found.secret);
    return reach_rank_0(there, found.secret, self, deadline);
} catch (const Error &error) {
    if (error.status() != YOKE_E_TIMEOUT) throw;
    return nullptr;
}

}  // namespace

std::string draw_secret()
{
    return format("%016llx%016llx", static_cast<unsigned long long>(unguessable_number()),
                  static_cast<unsigned long long>(unguessable_number()));
}

void publish_rank_0(HostStore &store, const std::string &key, uint16_t port,
                    const std::string &secret)
{
    const std::vector<std::string> hosts = own_addresses();
    std::string text = format("%s %u %s", kMark.data(), port, hosts.empty() ? "-" : secret.c_str());
    for (const std::string &host : hosts) text += " " + host;
    store.set(key, text);
    if (hosts.empty()) fail_without_network();
}

std::shared_ptr<ClientStore> find_rank_0(HostStore &store, const std::string &key, PeerOptions self,
                                         Deadline deadline)
{
    // After each attempt the store is read again: rank 0 may have come meanwhile and published another address.
    constexpr double kFirst = 0.05, kLongest = 2;
    for (double attempt = kFirst;; attempt = std::min(2 * attempt, kLongest)) {
        const StoreAddress found = read(store, key, self, deadline);
        const Deadline until = deadline.within(attempt);
        if (past.has(found.secret, self.rank)) {
            sleep_until(until);
        } else if (auto reached = try_to_reach(found, self, until)) {
            past.add(found.secret, self.rank);
            return reached;
        }
        if (deadline.has_passed()) fail_unreached(found, self, deadline);
    }
}

}  // namespace yoke
