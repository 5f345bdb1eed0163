// peer_memory.h: memory that peers reach without a copy: the ranks' agreement before the allocation, and the tensors.
#pragma once

#include "core/comm/late/device_engine.h"
#include "core/rendezvous/check_in.h"
#include "core/tensor/tensor.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace yoke {

// Returns the free bytes of a device, or INT64_MAX if the system does not report them.
int64_t free_memory_of(Device &device);
// Raises YOKE_E_OOM, alike on all ranks, if the ranks of a machine ask for more memory than is free there: each asks
// for `bytes`. `given`: for each rank the number of elements, their dtype, and free_memory_of().
void check_memory_of_hosts(const std::vector<int64_t> &given, const std::vector<RankInfo> &ranks,
                           uint64_t bytes);
// Raises YOKE_E_OOM, alike on all ranks, if the device of a rank has fewer than `bytes` free. `given` is as in
// check_memory_of_hosts.
void check_memory_of_devices(const std::vector<int64_t> &given, const std::vector<RankInfo> &ranks,
                             uint64_t bytes);
// Returns a text about the first rank whose request differs from rank 0's, alike on all ranks; "" if the requests are
// equal.
std::string unlike_memory(const std::vector<int64_t> &given, const std::vector<RankInfo> &ranks);
// Returns a tensor in memory of the host engine, which lives as long as the tensor. When the tensor goes, the engine
// gets its memory back.
Tensor lend(const std::shared_ptr<Engine> &engine, void *memory, IntList shape, yoke_dtype dtype,
            uint64_t bytes);
// Returns a tensor in memory of an engine of a device. The tensor may outlive the communicator, and keeps no
// reference to it. When the tensor goes, the engine gets its memory back.
Tensor lend(const std::shared_ptr<DeviceEngine> &engine, void *memory, IntList shape,
            yoke_dtype dtype, uint64_t bytes);

}  // namespace yoke
