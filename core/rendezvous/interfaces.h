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
// Returns each address of the active interfaces, with the interface's name: first all IPv4 addresses, then all IPv6
// addresses. Raises YOKE_E_IO if descriptors or memory are missing.
std::vector<Interface> host_interfaces();

class InterfaceChoice {
public:
    // Returns the choice written in the text. Raises YOKE_E_VALUE with the variable's name if a name in the list is
    // empty, or contains ^ or =.
    static InterfaceChoice read(std::string_view variable, std::string_view text);
    // Returns the choice of YOKE_SOCKET_IFNAME, or of a variable in its place. Returns an empty choice if no variable
    // is set.
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
// neither loopback nor a container's bridge. Prefers an address of the given family. Returns 127.0.0.1 if there is no
// such network; raises YOKE_E_VALUE if the chosen networks do not exist.
std::string host_address(const InterfaceChoice &choice, int family);

}  // namespace yoke
