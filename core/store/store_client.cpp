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
    // A server greets at once. Without a greeting, the server may be another program.
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
                      errno ? strerror(errno) : "the peer closed the connection at the greeting");
    const Kind kind = welcome->header.kind;
    const std::string text = welcome->reader().text();
    if (kind == Kind::kOtherJob) return failed(StoreConnection::kOtherJob, text);
    if (kind == Kind::kComplete) return failed(StoreConnection::kComplete, text);
    if (kind == Kind::kFormer) return failed(StoreConnection::kFormer, text);
    if (kind == Kind::kRefused) return failed(StoreConnection::kRefused, text);
    if (kind != Kind::kWelcome)
        return failed(StoreConnection::kNoStore,
                      "the peer does not speak the protocol of the store");
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

std::vector<std::string> ClientStore::serve(const Request &request, const Patience &patience)
{
    constexpr Kind kKinds[] = {Kind::kSet,    Kind::kGet,     Kind::kWait,  Kind::kAdd,
                               Kind::kTryGet, Kind::kSetOnce, Kind::kRemove};
    wire::Writer writer(kKinds[request.kind]);
    for (const std::string &key : request.keys) writer.text(key);
    if (request.kind == Request::kSet || request.kind == Request::kSetOnce)
        writer.text(request.value);
    if (request.kind == Request::kAdd) writer.number(request.delta);
    Link::Answer answer = link_->ask(std::move(writer), patience);
    if (answer.kind == Kind::kNothing) return {};
    if (request.kind == Request::kGet) return std::move(answer.texts);
    return {answer.text()};
}

void ClientStore::wake() noexcept
{
    link_->wake();
}

}  // namespace yoke
