// node.h: the machine of a process. Processes with the same boot and network namespace are on one machine, whatever
// its host name. Processes that share a pid namespace as well can share memory, because they reach each other's files
// by /proc.
#pragma once

#include <string>

namespace yoke {

struct HostNode {
    std::string identity;  // boot id, network namespace
    std::string memory;    // `identity`, and the pid namespace
    std::string host;      // text for messages
};
// Returns the machine, the namespaces and the host name of this process. Each call reads anew, because a process may
// enter another namespace.
HostNode read_node();

}  // namespace yoke
