// node.h: which processes are on one machine: those that share a boot and a network namespace, whatever their host is
// called. Memory is shared by those that share a pid namespace as well, since they reach each other's files by /proc.
#pragma once

#include <string>

namespace yoke {

struct HostNode {
    std::string identity;  // boot id, network namespace
    std::string memory;    // the same, and the pid namespace
    std::string host;      // for people
};
// Asked anew each time: a process may enter another namespace.
HostNode read_node();

}  // namespace yoke
