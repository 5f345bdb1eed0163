// ports.h: ports for rank 0 of a job if no port is given, or if the launcher has taken the given port.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace yoke {

inline constexpr int kCandidatePorts = 16;

// Returns 16 ports made of the job's name: alike on all ranks, and different for most jobs. The ports are below the
// range that the system gives to connections.
std::vector<uint16_t> candidate_ports(std::string_view job);

}  // namespace yoke
