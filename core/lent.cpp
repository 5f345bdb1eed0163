// Table of the functions that higher layers give to lower layers (core/base/lent.h). Only this file stands above all
// layers of the core.
#include "core/base/lent.h"

#include "core/comm/local_rank.h"
#include "core/comm/staging.h"
#include "core/device/stream.h"
#include "core/memory/memory.h"
#include "core/ops/autocast.h"
#include "core/ops/graph.h"
#include "core/ops/recompute/scope.h"
#include "core/tensor/live.h"
#include "core/tensor/snapshot.h"

namespace yoke {

constinit Lent lent = {
    .drop_graph = detail::drop_graph,
    .drop_autocast = detail::drop_autocast,
    .drop_scope = detail::drop_scope,
    .drop_memory_cache = detail::drop_memory_cache,
    .drop_stream = detail::drop_stream,
    .live_tensors = detail::live_tensors,
    .live_memory = detail::live_memory,
    .live_groups = detail::live_groups,
    .local_rank = detail::local_rank,
    .is_rank_beside = detail::is_rank_beside,
    .is_variable_of_rank = detail::is_variable_of_rank,
    .empty_snapshot_cache = detail::empty_snapshot_cache,
    .alloc_scratch = detail::alloc_scratch,
    .free_scratch = detail::free_scratch,
};

}  // namespace yoke
