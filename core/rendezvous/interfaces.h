// interfaces.h: by which of its networks a host talks to the others: YOKE_SOCKET_IFNAME, or what stands for it, in
// NCCL's syntax: "ib,eth" are beginnings of names, "=eth0" is a name, "^docker,lo" is all but those.
#pragma once

#include "core/base/foreign.h"
#include "core/store/socket.h"

#include <string>
#include <string_view>
#include <vector>

namespace yoke {

struct Interface {
    std::string name;
    SocketAddress address;
};
// Those that are up and have an address, of each the IPv4 one first.
std::vector<Interface> host_interfaces();

class InterfaceChoice {
public:
    // Raises YOKE_E_VALUE, naming the variable, for a text that names nothing.
    static InterfaceChoice read(std::string_view variable, std::string_view text);
    // Empty where nobody has set it.
    static InterfaceChoice configured();

    bool empty() const noexcept { return names_.empty(); }
    bool accepts(std::string_view name) const;
    // Those that it accepts. Raises YOKE_E_VALUE with those that there are where it is none.
    std::vector<Interface> among(const std::vector<Interface> &all) const;

private:
    std::string variable_, text_;
    bool is_exact_ = false, is_except_ = false;
    std::vector<std::string> names_;
};

// All of foreign_variables(); one that names no network of this host, which would be an error at its first use, is
// told as unreadable, and why.
std::vector<ForeignVariable> comm_variables();

// An address by which other hosts may reach this one: on the chosen networks, else on the first that is neither
// loopback nor a container's bridge, of that family if there is one.
std::string host_address(const InterfaceChoice &choice, int family);

}  // namespace yoke
