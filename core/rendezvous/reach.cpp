#include "core/rendezvous/reach.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/log.h"
#include "core/rendezvous/init_call.h"
#include "core/rendezvous/ports.h"
#include "core/store/store_refusal.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

namespace yoke {

namespace {

std::vector<uint16_t> ports_of(const Environment &environment, const std::string &job)
{
    if (environment.port && !environment.agent_store) return {environment.port};
    return candidate_ports(job);
}

constexpr const char *kOfShortage = "check ulimit -n, and the free memory";

// Returns who listens at the port, as far as the listener answers. If the listener is rank 0 of the same job, the
// connection also notifies its other ranks of this rank.
std::string holder_of(uint16_t port, const PeerOptions &self)
{
    constexpr double kToTell = 1;
    const Deadline deadline = Deadline::after(kToTell);
    const SocketAddress here = resolve("127.0.0.1", port, deadline)[0];
    const StoreConnection tried = connect_store(here, self, deadline);
    switch (tried.outcome) {
        case StoreConnection::kOtherJob:
        case StoreConnection::kComplete:
            return "rank 0 of another job listens there: " + tried.why;
        case StoreConnection::kFormer:
            return "rank 0 of a job to which this process already belongs listens there: " +
                   tried.why;
        case StoreConnection::kRefused:
            return tried.why;
        default:
            return "another program listens there";
    }
}

// Addresses that were tried, with their answers.
class Attempts {
public:
    void note(const std::string &where, const StoreConnection &tried)
    {
        std::string how = tried.why;
        if (tried.outcome == StoreConnection::kOtherJob ||
            tried.outcome == StoreConnection::kComplete)
            how = "rank 0 of another job listens there, " + tried.why;
        if (tried.outcome == StoreConnection::kFormer)
            how = "rank 0 has not yet released its earlier groups with this rank: " + tried.why;
        if (tried.outcome == StoreConnection::kNoStore)
            how = "another program listens there, or is busy: " + tried.why;
        // A rank 0 from an earlier rendezvous may close its port during a greeting, once.
        const bool is_again =
            std::exchange(answers_[where].outcome, tried.outcome) == tried.outcome;
        const bool is_usual = tried.outcome == StoreConnection::kNobody ||
                              tried.outcome == StoreConnection::kFormer ||
                              (tried.outcome == StoreConnection::kNoStore && !is_again);
        note(where, how, !is_usual);
    }
    // Notes how an address answered. Logs a strange answer at its first time, because a long wait may follow.
    void note(const std::string &where, const std::string &how, bool is_strange)
    {
        Answer &known = answers_[where];
        known.how = how;
        if (is_strange && std::exchange(known.told, how) != how)
            log(LogLevel::kWarn, "comm.init: %s: %s; this rank tries again", where.c_str(),
                how.c_str());
    }
    bool has(const std::string &where) const { return answers_.contains(where); }
    // Returns all answers. Places with the same answer share a single entry.
    std::string text() const
    {
        std::map<std::string, std::string> places;
        for (const auto &[where, answer] : answers_) {
            std::string &known = places[answer.how];
            if (known.empty())
                known = where;
            else if (known.find(" and others") == known.npos)
                known += " and others";
        }
        std::string all;
        for (const auto &[how, where] : places)
            all += (all.empty() ? "" : "; ") + where + ": " + how;
        return all;
    }

private:
    struct Answer {
        std::string how, told;  // the last answer, and the logged answer
        StoreConnection::Outcome outcome = StoreConnection::kNobody;
    };

    std::map<std::string, Answer> answers_;
};

// Search for rank 0, which tries each address in turn.
class Search {
public:
    Search(const Environment &environment, std::vector<uint16_t> ports, const PeerOptions &self,
           Deadline deadline)
        : environment_(environment), ports_(std::move(ports)), self_(self), deadline_(deadline)
    {
    }

    std::shared_ptr<ClientStore> run()
    {
        constexpr double kFirstPause = 0.005, kLongestPause = 0.25;
        for (double pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
            if (auto found = try_all()) return found;
            if (!deadline_.has_passed()) sleep_until(deadline_.within(pause));
            if (deadline_.has_passed()) raise_late();
        }
    }

private:
    std::shared_ptr<ClientStore> try_all()
    {
        std::vector<SocketAddress> addresses;
        for (const std::string &host : environment_.hosts)
            std::ranges::copy(addresses_of(host), std::back_inserter(addresses));
        for (const uint16_t port : ports_)
            for (auto each = addresses.begin(); each != addresses.end();) {
                each->set_port(port);
                StoreConnection tried = attempt(*each);
                if (tried.store) return std::move(tried.store);
                if (deadline_.has_passed()) return nullptr;
                // An address that does not answer at all will not answer at its other ports.
                each = tried.error == ETIMEDOUT ? addresses.erase(each) : std::next(each);
            }
        return nullptr;
    }

    StoreConnection attempt(const SocketAddress &address)
    {
        constexpr double kAttempt = 3;
        StoreConnection tried = connect_store(address, self_, deadline_.within(kAttempt));
        if (tried.outcome == StoreConnection::kRefused)
            fail_in(kInitCall, YOKE_E_COMM, "%s", tried.why.c_str());
        if (is_shortage(tried.error)) fail_short(address, tried.why);
        if (!tried.store) attempts_.note(address.text(), tried);
        return tried;
    }

    [[noreturn]] void fail_short(const SocketAddress &address, const std::string &lack) const
    {
        const std::string why = format("the rank cannot open a connection to rank 0: %s; %s",
                                       lack.c_str(), kOfShortage);
        call_off({address}, self_, why);
        throw Error(YOKE_E_IO, why);
    }

    // Returns the addresses of a host. If the name is not found, notes the error and returns no addresses. A name may
    // become known later, such as the name of a starting pod.
    std::vector<SocketAddress> addresses_of(const std::string &host)
    {
        try {
            return resolve(host, 0, deadline_);
        } catch (const Interrupted &) {
            throw;
        } catch (const Error &error) {
            if (error.status() == YOKE_E_OOM) throw;
            // If the time ends during a later try, the earlier answer stays.
            const std::string where = "'" + host + "'";
            if (error.status() != YOKE_E_TIMEOUT || !attempts_.has(where))
                attempts_.note(where, error.what(), true);
            return {};
        }
    }

    [[noreturn]] void raise_late() const
    {
        fail_in(
            kInitCall, YOKE_E_TIMEOUT,
            "rank %d (%s) did not reach rank 0 within %g s. %s. Check whether rank 0 runs, and whether its host and port (MASTER_ADDR, MASTER_PORT) are right",
            self_.rank, self_.about.c_str(), deadline_.given_s(), attempts_.text().c_str());
    }

    const Environment &environment_;
    const std::vector<uint16_t> ports_;
    const PeerOptions &self_;
    const Deadline deadline_;
    Attempts attempts_;
};

}  // namespace

std::string job_cookie(const std::string &job)
{
    constexpr size_t kMost = 200;
    if (job.size() <= kMost) return job;
    // Two long names that end alike differ in front, where the ports come from.
    return job.substr(job.size() - kMost) + std::to_string(candidate_ports(job)[0]);
}

Socket listen_at_any_port()
{
    Socket listening = Socket::listen(0);
    if (!listening.present())
        fail(YOKE_E_IO, "the system has no free port: %s; %s", strerror(errno), kOfShortage);
    return listening;
}

namespace {

[[noreturn]] void fail_to_listen(const std::vector<uint16_t> &ports, int shortage,
                                 const PeerOptions &self)
{
    const std::string why = format("the rank cannot listen at port %u: %s; %s", ports[0],
                                   strerror(shortage), kOfShortage);
    turn_away({-1, ports}, self.size - 1, self, why);
    throw Error(YOKE_E_IO, why);
}

}  // namespace

Socket listen_as_rank_0(const Environment &environment, const std::string &job,
                        const PeerOptions &self)
{
    const std::vector<uint16_t> ports = ports_of(environment, job);
    int failure = 0;
    for (const uint16_t port : ports) {
        Socket listening = Socket::listen(port);
        if (listening.present()) return listening;
        failure = errno;
    }
    if (is_shortage(failure)) fail_to_listen(ports, failure, self);
    if (ports.size() > 1)
        fail_in(
            kInitCall, YOKE_E_COMM,
            "rank 0 (%s) cannot listen at any of %zu ports from %u on: %s; give init_method tcp://HOST:PORT with a free port",
            self.about.c_str(), ports.size(), ports[0], strerror(failure));
    const bool is_taken = failure == EADDRINUSE;
    fail_in(
        kInitCall, YOKE_E_COMM,
        "rank 0 (%s) cannot listen at port %u: %s%s%s; give a free port in MASTER_PORT or init_method",
        self.about.c_str(), ports[0], strerror(failure), is_taken ? "; " : "",
        is_taken ? holder_of(ports[0], self).c_str() : "");
}

std::shared_ptr<ClientStore> reach_rank_0(const Environment &environment, const std::string &job,
                                          const PeerOptions &self, Deadline deadline)
{
    return Search(environment, ports_of(environment, job), self, deadline).run();
}

}  // namespace yoke
