#include "core/store/store_client.h"

#include "core/base/error.h"
#include "core/store/store_link.h"

#include <cerrno>
#include <cstring>

namespace yoke {

namespace {

using wire::Kind;

StoreConnection failed(StoreConnection::Outcome outcome, const std::string &why)
{
    return {outcome, why, nullptr, 0};
}

}  // namespace

StoreConnection connect_store(const SocketAddress &server, const PeerOptions &options,
                              Deadline deadline)
{
    // A server greets at once. What does not may be another program.
    constexpr double kForWelcome = 5;
    Socket socket = Socket::connect(server, deadline);
    if (!socket.present()) {
        const int error = errno;
        return {StoreConnection::kNobody, strerror(error), nullptr, error};
    }
    socket.set_no_delay();
    const Deadline greeting = deadline.within(kForWelcome);
    errno = 0;
    const bool is_sent = send_all(socket, wire::hello(options), greeting);
    const auto welcome =
        is_sent ? wire::receive_frame(socket.fd(), wire::kLongestWelcome, greeting) : std::nullopt;
    if (!welcome)
        return failed(StoreConnection::kNoStore,
                      errno ? strerror(errno) : "it closed the connection at the greeting");
    const Kind kind = welcome->header.kind;
    const std::string text = welcome->reader().text();
    if (kind == Kind::kOtherJob) return failed(StoreConnection::kOtherJob, text);
    if (kind == Kind::kComplete) return failed(StoreConnection::kComplete, text);
    if (kind == Kind::kFormer) return failed(StoreConnection::kFormer, text);
    if (kind == Kind::kRefused) return failed(StoreConnection::kRefused, text);
    if (kind != Kind::kWelcome)
        return failed(StoreConnection::kNoStore, "it answered in a language of its own");
    const auto link = std::make_shared<ClientStore::Link>(std::move(socket), options);
    try {
        link->start();
    } catch (const std::exception &error) {
        link->leave(error.what());
        throw;
    }
    return {StoreConnection::kConnected, "", std::make_shared<ClientStore>(link)};
}

ClientStore::ClientStore(std::shared_ptr<Link> link) : link_(std::move(link)) {}

ClientStore::~ClientStore()
{
    link_->leave();
}

std::string ClientStore::where() const
{
    return "rank 0 at " + link_->server();
}

SocketAddress ClientStore::local() const
{
    return link_->local();
}

std::optional<uint64_t> ClientStore::when_set(std::string_view key, Then then)
{
    return link_->ask_later(std::move(wire::Writer(Kind::kWhenSet).text(key)), std::move(then));
}

bool ClientStore::offer(std::string_view key, std::string_view value)
{
    const auto ignore = [](const std::string &) {};
    return link_->ask_later(std::move(wire::Writer(Kind::kSetOnce).text(key).text(value)), ignore);
}

void ClientStore::forget(std::string_view, uint64_t number) noexcept
{
    link_->forget(number);
}

void ClientStore::do_set(const std::string &key, std::string_view value, const Patience &patience)
{
    link_->ask(std::move(wire::Writer(Kind::kSet).text(key).text(value)), patience);
}

std::vector<std::string> ClientStore::do_await(const Keys &keys, bool wants_values,
                                               const Patience &patience)
{
    wire::Writer request(wants_values ? Kind::kGet : Kind::kWait);
    for (const std::string &key : keys) request.text(key);
    return link_->ask(std::move(request), patience).texts;
}

int64_t ClientStore::do_add(const std::string &key, int64_t delta, const Patience &patience)
{
    wire::Writer request(Kind::kAdd);
    request.text(key).number(delta);
    return detail::sum_of(key, link_->ask(std::move(request), patience).text(), 0);
}

std::optional<std::string> ClientStore::do_try_get(const std::string &key, const Patience &patience)
{
    const auto answer = link_->ask(std::move(wire::Writer(Kind::kTryGet).text(key)), patience);
    if (answer.kind == Kind::kNothing) return std::nullopt;
    return answer.text();
}

std::string ClientStore::do_set_once(const std::string &key, std::string_view value,
                                     const Patience &patience)
{
    wire::Writer request(Kind::kSetOnce);
    request.text(key).text(value);
    return link_->ask(std::move(request), patience).text();
}

void ClientStore::do_remove(const std::string &key, const Patience &patience)
{
    do_remove_all({key}, patience);
}

void ClientStore::do_remove_all(const Keys &keys, const Patience &patience)
{
    wire::Writer request(Kind::kRemove);
    for (const std::string &key : keys) request.text(key);
    link_->ask(std::move(request), patience);
}

void ClientStore::wake() noexcept
{
    link_->wake();
}

}  // namespace yoke
