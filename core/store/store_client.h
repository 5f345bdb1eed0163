// store_client.h: rank 0's table, as the other ranks reach it: see core/store/store_server.h.
#pragma once

#include "core/store/socket.h"
#include "core/store/store.h"
#include "core/store/store_peer.h"

namespace yoke {

class ClientStore;

struct StoreConnection {
    enum Outcome {
        kConnected,
        kNobody,    // no server, or no way to the address: the server may come later
        kNoStore,   // the server is no store of Yoke's, or did not answer
        kOtherJob,  // a store of another job
        kComplete,  // a store of this job, whose ranks are all there
        kFormer,  // a store of this job that this process left before; a new start of the job may follow soon
        kRefused,  // a store of this job that refuses this rank
    };
    Outcome outcome = kNobody;
    std::string why;  // unless kConnected: "Connection refused"
    std::shared_ptr<ClientStore> store;
    int error = 0;  // for kNobody: an errno
};
// Tries once to connect to a store's server and to join as a rank. Returns the client's store, or why there is none.
// Raises errors only if the watch of the connection cannot start, or after an interrupt.
StoreConnection connect_store(const SocketAddress &server, const PeerOptions &options,
                              Deadline deadline);

class ClientStore final : public Store {
public:
    class Link;  // part of the client for the watch thread

    explicit ClientStore(std::shared_ptr<Link> link);
    // Sends the goodbye message and closes the connection. Must not run in the watch thread.
    ~ClientStore() override;
    std::optional<uint64_t> when_set(std::string_view key, Then then) override;
    bool offer(std::string_view key, std::string_view value) override;
    void forget(std::string_view key, uint64_t number) noexcept override;
    std::string where() const override;
    // Returns the address of this end of the connection, by which peers reach this machine.
    SocketAddress local() const;

private:
    std::vector<std::string> serve(const Request &request, const Patience &patience) override;
    void wake() noexcept override;

    const std::shared_ptr<Link> link_;
};

}  // namespace yoke
