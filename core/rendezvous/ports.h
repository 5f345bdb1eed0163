// ports.h: at which ports rank 0 of a job may listen where nobody has named one, or the launcher has taken it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace yoke {

inline constexpr int kCandidatePorts = 16;

// Alike on all ranks, different for most jobs, below those that the system gives to connections.
std::vector<uint16_t> candidate_ports(std::string_view job);

}  // namespace yoke
