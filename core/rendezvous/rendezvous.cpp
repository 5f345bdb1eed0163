#include "core/rendezvous/rendezvous.h"

#include "core/base/config.h"
#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/rendezvous/init_call.h"
#include "core/rendezvous/interfaces.h"
#include "core/rendezvous/node.h"
#include "core/rendezvous/ports.h"
#include "core/rendezvous/reach.h"
#include "core/rendezvous/relay.h"
#include "core/store/store_client.h"
#include "core/store/store_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace yoke {

double configured_silence()
{
    return parsed<double>(config_or_default("YOKE_COMM_SILENCE")).value_or(0);
}

namespace {

// Returns the name that tells this job from other jobs at the same port. For a torchrun with its own store, the host
// and port are part of the name, because torchrun may have no run id.
std::string name_of(const Environment &environment)
{
    if (!environment.agent_store) return environment.job;
    return environment.job + format(" at %s:%u", environment.hosts[0].c_str(), environment.port);
}

// Returns the job's name with its start number. If no port is given, each start of the job so gets other ports.
std::string job_of(const Environment &environment)
{
    return name_of(environment) + format(" start %lld", static_cast<long long>(environment.epoch));
}

std::string prefix_of(const Environment &environment)
{
    return format("start%lld", static_cast<long long>(environment.epoch));
}

// Returns a view of the file for the next init. A file outlives a single init of a job. So the ranks meet under the
// first number without an outcome, however many jobs each process has joined.
std::shared_ptr<Store> next_init(const std::shared_ptr<Store> &store,
                                 const Environment &environment, Deadline deadline)
{
    for (int init = 0;; ++init) {
        auto view =
            std::make_shared<PrefixStore>(store, prefix_of(environment) + format("/init%d", init));
        if (!CheckIn::is_over(*view, deadline)) return view;
    }
}

// File store with the interface of a host program's store.
class FileOfHost final : public HostStore {
public:
    FileOfHost(Store &file, Deadline deadline) : file_(file), deadline_(deadline) {}
    void set(const std::string &key, const std::string &value) override
    {
        file_.set(key, value, deadline_);
    }
    std::string get(const std::string &key, Deadline deadline) override
    {
        return file_.get(key, deadline);
    }

private:
    Store &file_;
    const Deadline deadline_;
};

constexpr const char *kRank0 = "rank0";

// Attempt of a single rank to join its job.
class RendezvousAttempt {
public:
    explicit RendezvousAttempt(const RendezvousOptions &options);
    Rendezvous run();

private:
    bool is_alone() const { return environment_.size == 1 && environment_.rank == 0; }
    void refuse_own_rank();
    void open_store();
    void serve(Socket listening);
    void adopt(std::shared_ptr<ClientStore> client);
    void meet_by_host_store();
    void open_file();
    void go_on_over_rank_0();
    std::string address() const;
    std::vector<RankInfo> check_in();
    std::string hint_of_address() const noexcept;
    std::string named(std::string_view text) const;
    void refuse(std::string_view why) noexcept;
    Rendezvous meet_all();
    void linger() noexcept;
    PeerOptions peer_options() const;

    const RendezvousOptions &options_;
    const Environment environment_;
    const Deadline deadline_;
    const std::string job_;
    std::string secret_;  // in a host program's store or a file, if any
    RankInfo self_;
    const std::shared_ptr<Relay> relay_;
    std::shared_ptr<StoreServer> server_;
    std::shared_ptr<Store> store_;
    std::shared_ptr<Store> file_;  // where all check in first: who is missing may be rank 0
    Socket listening_;             // meanwhile
    bool has_checked_in_ = false;
    SocketAddress reached_from_{};  // where this rank's connection to rank 0 begins
};

InitArguments arguments_of(const RendezvousOptions &options)
{
    InitArguments arguments = options.arguments;
    arguments.has_store = options.host_store != nullptr;
    return arguments;
}

// Returns the deadline of the attempt. A rank that is not below the size gets a second at most: it only notifies the
// other ranks, and fails.
Deadline deadline_of(const RendezvousOptions &options, const Environment &environment)
{
    constexpr double kToTell = 1;
    return environment.rank < environment.size ? options.deadline
                                               : options.deadline.within(kToTell);
}

double silence_of(const RendezvousOptions &options)
{
    return options.silence_s < 0 ? configured_silence() : options.silence_s;
}

RendezvousAttempt::RendezvousAttempt(const RendezvousOptions &options)
    : options_(options),
      environment_(read_environment(arguments_of(options), options.variable, options.launcher)),
      deadline_(deadline_of(options, environment_)),
      job_(job_of(environment_)),
      relay_(std::make_shared<Relay>(options.observer))
{
    const HostNode node = read_node();
    self_.rank = environment_.rank;
    self_.size = environment_.size;
    self_.host = node.host;
    self_.process = getpid();
    self_.node = node.identity;
    self_.memory = node.memory;
    self_.build = options.build;
    self_.device = options.device;
    self_.silence = format("%g", silence_of(options));
    self_.local_rank = environment_.local_rank;
    self_.local_size = environment_.local_size;
}

PeerOptions RendezvousAttempt::peer_options() const
{
    PeerOptions peer;
    peer.cookie = job_cookie(secret_.empty() ? name_of(environment_) : secret_);
    peer.start = environment_.epoch;
    peer.rank = self_.rank;
    peer.size = self_.size;
    peer.silence_s = silence_of(options_);
    peer.observer = [relay = relay_](const PeerEvent &event) { relay->tell(event); };
    peer.about = describe_process(self_);
    return peer;
}

void RendezvousAttempt::serve(Socket listening)
{
    server_ = StoreServer::open(std::move(listening), peer_options());
    store_ = std::make_shared<PrefixStore>(server_->table(), prefix_of(environment_));
    relay_->begin(store_);
}

void RendezvousAttempt::adopt(std::shared_ptr<ClientStore> client)
{
    reached_from_ = client->local();
    store_ = std::make_shared<PrefixStore>(std::move(client), prefix_of(environment_));
}

void RendezvousAttempt::meet_by_host_store()
{
    const std::string key = "yoke/" + prefix_of(environment_) + "/" + kRank0;
    if (environment_.rank != 0)
        return adopt(find_rank_0(*options_.host_store, key, peer_options(), deadline_));
    secret_ = draw_secret();
    Socket listening = listen_at_any_port();
    publish_rank_0(*options_.host_store, key, listening.local().port(), secret_);
    serve(std::move(listening));
}

void RendezvousAttempt::open_file()
{
    store_ = file_ =
        next_init(open_file_store(environment_.file, job_, deadline_), environment_, deadline_);
    if (environment_.rank != 0) return;
    secret_ = draw_secret();
    listening_ = listen_at_any_port();
    FileOfHost host(*file_, deadline_);
    publish_rank_0(host, kRank0, listening_.local().port(), secret_);
}

// Moves from the file to rank 0's store, because a file reports neither the death of a rank nor the cause of a
// group's failure.
void RendezvousAttempt::go_on_over_rank_0()
{
    if (environment_.rank == 0) return serve(std::move(listening_));
    FileOfHost host(*file_, deadline_);
    adopt(find_rank_0(host, kRank0, peer_options(), deadline_));
}

void RendezvousAttempt::open_store()
{
    if (is_alone())
        store_ = std::make_shared<HashStore>();
    else if (options_.host_store)
        meet_by_host_store();
    else if (!environment_.file.empty())
        open_file();
    else if (environment_.rank == 0)
        serve(listen_as_rank_0(environment_, job_, peer_options()));
    else
        adopt(reach_rank_0(environment_, job_, peer_options(), deadline_));
}

// Returns this machine's address for the other ranks: on the chosen network, else on the connection to rank 0, else
// on any network. Rank 0 takes the address at which ranks have reached it.
std::string RendezvousAttempt::address() const
{
    const InterfaceChoice choice = InterfaceChoice::configured();
    if (choice.empty() && server_) return server_->reached_at();
    if (choice.empty() && reached_from_.length) return reached_from_.host();
    return host_address(choice, reached_from_.length ? reached_from_.family() : AF_UNSPEC);
}

std::vector<RankInfo> RendezvousAttempt::check_in()
{
    self_.address = address();
    has_checked_in_ = true;
    try {
        return CheckIn(*store_, self_, [this] { return address(); }).meet(deadline_);
    } catch (const Error &error) {
        const bool is_late = error.status() == YOKE_E_TIMEOUT;
        if (!is_late || !server_ || !server_->reached_at().empty()) throw;
        throw Error(error.status(), error.what() + hint_of_address()).naming(error.call().size());
    }
}

// Returns a hint for the case that no rank has reached rank 0: no network of this machine has the address in
// MASTER_ADDR. Returns "" if a network has the address, or if the address is unknown. If an address is translated, as
// for a service of Kubernetes, such an address is right.
std::string RendezvousAttempt::hint_of_address() const noexcept
try {
    constexpr double kToResolve = 0.1;
    std::string found;
    for (const std::string &host : environment_.hosts)
        for (const SocketAddress &each : resolve(host, 0, Deadline::after(kToResolve))) {
            const auto is_here = [&](const Interface &one) {
                return one.address.host() == each.host();
            };
            if (is_loopback(each.host()) || each.host() == "0.0.0.0" || each.host() == "::" ||
                std::ranges::any_of(host_interfaces(), is_here))
                return "";
            add_part(found, each.host());
        }
    if (found.empty()) return "";
    return format(
        ". The other ranks look for rank 0 at '%s' (MASTER_ADDR), which is %s, but this host (%s) has another address; unless a service forwards that address, start rank 0 there, or change MASTER_ADDR on all ranks",
        environment_.hosts[0].c_str(), found.c_str(), self_.host.c_str());
} catch (const std::exception &) {  // no hint is known
    return "";
}

// Returns whether the error comes from the store: such an error was reported to all ranks or to none.
bool is_of_all(const Error &error)
{
    return error.status() == YOKE_E_TIMEOUT || error.status() == YOKE_E_COMM;
}

// Returns the text with the call and this rank in front: "comm.init: rank 1 (host a, process 7): ".
std::string RendezvousAttempt::named(std::string_view text) const
{
    return format("%s: %s: ", kInitCall, describe(self_).c_str()) + std::string(text);
}

// Reports an error of this rank alone, for which the other ranks would otherwise wait in vain.
void RendezvousAttempt::refuse(std::string_view why) noexcept
try {
    constexpr double kToTell = 0.2, kToCome = 1;
    if (!store_) return;  // without a store, the rank has already reported all it can
    // Ranks that open the file after this failure take the failed ranks for another init.
    if (file_ && !has_checked_in_)
        CheckIn::await_others(*store_, self_.size, Deadline::after(kToCome));
    CheckIn::refuse(*store_, named(why), Deadline::after(kToTell));
} catch (const std::exception &failure) {
    log(LogLevel::kWarn,
        "the cause of this rank's failure could not be sent to the other ranks: %s",
        failure.what());
}

// Waits up to a second, if this process serves the store, so the other ranks can read the outcome before the server
// ends. Late ranks can read it too.
void RendezvousAttempt::linger() noexcept
{
    constexpr double kLeast = 0.15, kMost = 1;
    const double seconds = std::clamp(deadline_.remaining_s(), kLeast, kMost);
    if (server_) server_->wait_until_left(Deadline::after(seconds), self_.size - 1);
}

// Raises YOKE_E_VALUE if this rank is not below the size. Tries to notify the other ranks first.
void RendezvousAttempt::refuse_own_rank()
try {
    check_rank(environment_);
} catch (const Error &error) {
    if (environment_.size > 1) try {
            open_store();
            refuse(error.text());
        } catch (const std::exception &failure) {
            log(LogLevel::kInfo,
                "the cause of this rank's failure could not be sent to the other ranks: %s",
                failure.what());
        }
    throw;
}

// Runs the attempt and returns the rendezvous. An error of this rank alone is raised with the rank's name in front.
Rendezvous RendezvousAttempt::run()
try {
    return meet_all();
} catch (const Interrupted &) {
    throw;
} catch (const Error &error) {
    if (is_of_all(error)) throw;
    throw Error(error.status(), named(error.text())).naming(strlen(kInitCall));
} catch (const std::bad_alloc &) {
    throw Error(YOKE_E_OOM, named(kNoMemoryText)).naming(strlen(kInitCall));
}

Rendezvous RendezvousAttempt::meet_all()
{
    refuse_own_rank();
    Rendezvous made;
    try {
        open_store();
        made.ranks = check_in();
        if (file_) {
            go_on_over_rank_0();
            made.ranks = check_in();
        }
    } catch (const Error &error) {
        if (!is_of_all(error)) refuse(error.text());
        linger();
        throw;
    } catch (const std::bad_alloc &) {
        refuse(kNoMemoryText);
        linger();
        throw;
    }
    if (server_) server_->close_to_newcomers();
    if (self_.rank == 0 && !environment_.doubt.empty())
        log(LogLevel::kWarn, "%s", environment_.doubt.c_str());
    const std::string unlike = self_.rank ? "" : unlike_devices(made.ranks);
    if (!unlike.empty()) log(LogLevel::kWarn, "%s", unlike.c_str());
    const std::string silences = self_.rank ? "" : unlike_silence(made.ranks);
    if (!silences.empty()) log(LogLevel::kWarn, "%s", silences.c_str());
    relay_->complete();
    made.rank = self_.rank;
    made.size = self_.size;
    made.store = store_;
    made.server = server_;
    made.source = environment_.source;
    made.told = describe(environment_);
    made.file = file_;
    return made;
}

}  // namespace

Rendezvous meet(const RendezvousOptions &options)
{
    return RendezvousAttempt(options).run();
}

}  // namespace yoke
