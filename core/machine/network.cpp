#include "core/machine/network.h"

#include "core/machine/sysfs.h"

#include <cmath>
#include <cstdlib>

namespace yoke {

namespace {

NetworkCard read_port(const Folder &port, const std::string &number)
{
    NetworkCard network{};
    network.info.struct_size = sizeof network.info;
    network.info.port = atoi(number.c_str());
    // "4: ACTIVE"
    const std::string state = port.text("state", 64);
    const size_t colon = state.find(": ");
    put(network.info.state, colon == std::string::npos ? state : state.substr(colon + 2));
    network.info.active = state.empty() ? -1 : std::string_view(network.info.state) == "ACTIVE";
    // "400 Gb/sec (4X NDR)"
    const double rate = number_of(port.text("rate", 64));
    network.info.rate = rate > 0 ? rate * 1e9 : NAN;
    put(network.info.layer, port.text("link_layer", 64));
    return network;
}

}  // namespace

std::vector<NetworkCard> read_networks(const Root &root)
{
    std::vector<NetworkCard> found;
    const Folder all = root.folder("/sys/class/infiniband");
    for (const std::string &name : all.names()) {
        const Folder device(all, name);
        // The network's folder is below its PCI device's folder, which is below the folders of the bridges.
        std::vector<std::string> bridges = bridges_of(all.link(name), "");
        const std::string address = bridges.empty() ? "" : bridges.front();
        if (!bridges.empty()) bridges.erase(bridges.begin());
        const Folder ports(device, "ports");
        for (const std::string &number : ports.names()) {
            NetworkCard network = read_port(Folder(ports, number), number);
            put(network.info.name, name);
            put(network.info.pci, address);
            network.info.numa_node = static_cast<int32_t>(device.number("device/numa_node"));
            network.bridges = bridges;
            found.push_back(network);
        }
    }
    return found;
}

}  // namespace yoke
