#include "core/ops/launch.h"

#include "core/ops/engines.h"
#include "core/ops/graph.h"
#include "core/ops/recompute/scope.h"
#include "core/ops/scalar.h"
#include "core/ops/tf32.h"
#include "core/tensor/snapshot.h"

namespace yoke {

uint64_t describe_operand(yoke_operand &o, const yoke_tensor *x, uint32_t access)
{
    if (!x) {
        o = {};
        return 0;
    }
    const ByteRange range = byte_range(*x);
    // An empty tensor has no memory; kernels still step through its strides, and may not step from null.
    o.data = x->data ? x->data : static_cast<void *>(&o);
    o.shape = x->shape_;
    o.strides = x->strides_;
    o.numel = x->numel;
    o.ndim = x->ndim;
    o.dtype = x->dtype;
    o.flags = access | (x->contiguous ? YOKE_OPERAND_CONTIGUOUS : 0);
    o.reserved = 0;
    o.begin = range.begin;
    o.bytes = range.bytes;
    o.immediate = 0;
    return range.bytes;
}

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
        // Results were allocated on that stream, and are told nothing new.
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

void Call::describe_scalar(yoke_operand &o, const yoke_arg &value) const
{
    o = {};
    o.data = &o.immediate;
    o.numel = 1;
    o.dtype = plan_.scalar_dtype_;
    o.flags = YOKE_OPERAND_READ | YOKE_OPERAND_SCALAR | YOKE_OPERAND_CONTIGUOUS;
    o.immediate = scalar_bits(value, o.dtype);
}

void Call::launch()
{
    const size_t count = tensors_.size() + static_cast<size_t>(plan_.result_count_);
    ShortList<yoke_operand, 8> operands(count);
    ShortList<Storage *, 8> storages(count);
    yoke_operand *operand = operands.data();
    Storage **storage = storages.data();
    yoke_arg params[kMaxArgs];
    int param_count = 0;
    uint64_t bytes = 0;
    yoke_tensor *const *tensor = tensors_.data();
    for (int i = 0; i < op_.arg_count; ++i) {
        const yoke_arg &value = args_[i];
        const ArgType type = op_.args[i].type;
        const uint32_t access =
            is_written(type) ? YOKE_OPERAND_READ | YOKE_OPERAND_WRITE : YOKE_OPERAND_READ;
        if (!is_tensor_type(type))
            params[param_count++] = value;
        else if (is_scalar(value))
            describe_scalar(*operand++, value), ++tensor, *storage++ = nullptr;
        else
            for (int k = 0; k < (is_list_type(type) ? value.count : 1); ++k, ++tensor) {
                bytes += describe_operand(*operand++, *tensor, access);
                *storage++ = *tensor ? (*tensor)->storage.get() : nullptr;
            }
    }
    for (int k = 0; k < plan_.result_count_; ++k) {
        bytes += describe_operand(*operand++, plan_.results_[k].get(), YOKE_OPERAND_WRITE);
        *storage++ = plan_.results_[k]->storage.get();
    }
    Device &device = plan_.device_;
    const bool is_product = op_.cost == Cost::kGemm;
    const CudnnTerms cudnn = is_product ? cudnn_terms() : CudnnTerms();
    yoke_launch record{sizeof(yoke_launch),
                       op_.in_place_of >= 0 ? op_.in_place_of : number_,
                       operands.data(),
                       params,
                       static_cast<int32_t>(count),
                       param_count,
                       device.handle,
                       nullptr,
                       is_product ? plan_.work_ : static_cast<double>(bytes),
                       nullptr,
                       tf32_flag() | cudnn.flags,
                       cudnn.benchmark_limit,
                       cudnn.workspace_limit};
    if (Scope *scope = Scope::of_thread()) [[unlikely]] {
        // An op that writes its result into an argument makes no memory.
        const bool is_in_place =
            op_.in_place_of >= 0 && plan_.results_[0].get() == args_[op_.mut_result].v.tensor;
        const size_t fresh = is_in_place ? count : tensors_.size();
        return scope->launch(op_, record, device, {storages.data(), count}, fresh);
    }
    issue(op_, record, device, {storages.data(), count});
}

}  // namespace yoke
