#include "core/rendezvous/ports.h"

#include <algorithm>

namespace yoke {

std::vector<uint16_t> candidate_ports(std::string_view job)
{
    constexpr uint64_t kFirst = 20000, kEnd = 32768;
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    const auto mix = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3; };
    for (const char c : job) mix(static_cast<unsigned char>(c));
    std::vector<uint16_t> ports;
    while (ports.size() < kCandidatePorts) {
        mix(0);
        const auto port = static_cast<uint16_t>(kFirst + (hash >> 16) % (kEnd - kFirst));
        if (std::find(ports.begin(), ports.end(), port) == ports.end()) ports.push_back(port);
    }
    return ports;
}

}  // namespace yoke
