// peer_memory.h: memory that peers reach without a copy: what ranks agree on before an engine gives it, and tensors in
// it.
#pragma once

#include "core/comm/engine.h"
#include "core/rendezvous/check_in.h"
#include "core/tensor/tensor.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace yoke {

int64_t free_memory_of_host();
// Raises YOKE_E_OOM where the ranks of a host ask for more than is free there. `given`: of each rank the number of
// elements, their dtype, and free_memory_of_host().
void check_memory_of_hosts(const std::vector<int64_t> &given, const std::vector<RankInfo> &ranks,
                           uint64_t bytes);
// Returns in what the first rank differs that does, alike on all ranks; "" where none does.
std::string unlike_memory(const std::vector<int64_t> &given, const std::vector<RankInfo> &ranks);
// Returns a tensor in memory of the engine, which takes the memory back when the tensor goes.
Tensor lend(const std::shared_ptr<Engine> &engine, void *memory, IntList shape, yoke_dtype dtype,
            uint64_t bytes);

}  // namespace yoke
