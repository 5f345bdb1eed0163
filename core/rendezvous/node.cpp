#include "core/rendezvous/node.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <sys/stat.h>
#include <unistd.h>

#include <ctime>

namespace yoke {

namespace {

// Returns the number of this process's namespace on this machine, or 0 if the system has no such namespaces.
uint64_t namespace_of(const char *kind)
{
    struct stat found {};
    const std::string path = format("/proc/self/ns/%s", kind);
    return stat(path.c_str(), &found) == 0 ? static_cast<uint64_t>(found.st_ino) : 0;
}

std::string boot_id()
{
    const std::string text = file_text("/proc/sys/kernel/random/boot_id");
    const std::string id = text.substr(0, text.find('\n'));
    if (!id.empty()) return id;
    // If the machine has no boot id, each of its processes counts as a machine: slower, but never wrong.
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return format("process %d of %lld.%09ld", getpid(), static_cast<long long>(now.tv_sec),
                  now.tv_nsec);
}

std::string host_name()
{
    char name[256] = {};
    return gethostname(name, sizeof name - 1) == 0 && name[0] ? name : "localhost";
}

}  // namespace

HostNode read_node()
{
    const std::string network = format("%s net %llu", boot_id().c_str(),
                                       static_cast<unsigned long long>(namespace_of("net")));
    const std::string memory = format("%s pid %llu", network.c_str(),
                                      static_cast<unsigned long long>(namespace_of("pid")));
    return {network, memory, host_name()};
}

}  // namespace yoke
