// interfaces.h: the networks over which a machine talks to other machines. YOKE_SOCKET_IFNAME or a variable in its
// place chooses the networks in NCCL's syntax: "ib,eth" are prefixes of names, "=eth0" is an exact name, "^docker,lo"
// is all except these prefixes.
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
// Returns the active interfaces with an address, each with its IPv4 address first.
std::vector<Interface> host_interfaces();

class InterfaceChoice {
public:
    // Raises YOKE_E_VALUE with the variable's name if the text contains no name.
    static InterfaceChoice read(std::string_view variable, std::string_view text);
    // Empty if no variable is set.
    static InterfaceChoice configured();

    bool empty() const noexcept { return names_.empty(); }
    bool accepts(std::string_view name) const;
    // Returns the accepted interfaces. If there are none, raises YOKE_E_VALUE with a list of the existing interfaces.
    std::vector<Interface> among(const std::vector<Interface> &all) const;

private:
    std::string variable_, text_;
    bool is_exact_ = false, is_except_ = false;
    std::vector<std::string> names_;
};

// Returns all of foreign_variables(). If a variable names no network of this machine, its first use would raise. So
// the variable is reported as unreadable, with the reason.
std::vector<ForeignVariable> comm_variables();

// Returns an address of this machine for other machines: on the chosen networks, else on the first network that is
// neither loopback nor a container's bridge. Prefers an address of the given family.
std::string host_address(const InterfaceChoice &choice, int family);

}  // namespace yoke
