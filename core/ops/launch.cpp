#include "core/ops/launch.h"

#include "core/ops/graph.h"
#include "core/tensor/snapshot.h"

namespace yoke {

static void see_to_snapshots(const yoke_launch &record, std::span<Storage *const> storages)
{
    for (size_t i = 0; i < storages.size(); ++i)
        if (storages[i] && record.operands[i].flags & YOKE_OPERAND_WRITE)
            before_write(*storages[i]);
}

void issue(const OpDef &called, yoke_launch &record, Device &device,
           std::span<Storage *const> storages, bool is_placed)
{
    const yoke_kernel_fn kernel = kernel_of(device, record.op, public_name(called));
    if (Graph *graph = Graph::of_thread()) [[unlikely]] {
        if (graph->take(kOps[record.op], record, kernel, storages, is_placed)) return;
    } else if (device.has_side_streams.load(std::memory_order_relaxed)) [[unlikely]] {
        // Results were allocated on this stream, so note_use() changes nothing for results.
        record.stream = current_native(device);
        const uint8_t lane = memory_lane(device);
        for (Storage *storage : storages)
            if (storage) storage->note_use(lane);
    }
    if (has_snapshots()) [[unlikely]]
        see_to_snapshots(record, storages);
    const auto start = device.backend->launch;
    const yoke_status status = start ? start(&record, kernel) : kernel(&record);
    if (status != YOKE_OK) [[unlikely]]
        raise_kernel_error(called, status, device);
}

}  // namespace yoke
