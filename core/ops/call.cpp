#include "core/ops/call.h"

#include "core/ops/engines.h"
#include "core/ops/launch.h"
#include "core/ops/ops.h"
#include "core/ops/recompute/scope.h"
#include "core/ops/run.h"
#include "core/ops/scalar.h"
#include "core/ops/tf32.h"
#include "core/ops/views.h"
#include "core/select/select.h"

#include <algorithm>

namespace yoke {

template <class Visit>
void Call::each_tensor(Visit visit) const
{
    for (int i = 0; i < op_.arg_count; ++i) {
        const yoke_arg &value = args_[i];
        if (value.kind == YOKE_ARG_TENSOR) [[likely]]
            visit(i, value.v.tensor);
        else if (value.kind == YOKE_ARG_TENSORS)
            for (int k = 0; k < value.count; ++k) visit(i, value.v.tensors[k]);
        else if (is_single_tensor_type(op_.args[i].type))
            visit(i, nullptr);
    }
}

[[noreturn]] __attribute__((cold, noinline)) static void fail_missing(const OpDef &op, int arg,
                                                                      const char *what)
{
    fail(YOKE_E_VALUE, "%s: argument '%s' is %s; give a tensor", public_name(op), op.args[arg].name,
         what);
}

[[noreturn]] __attribute__((cold, noinline)) static void fail_apart(const OpDef &op, int arg,
                                                                    const Device &device,
                                                                    const Device &first)
{
    fail(YOKE_E_VALUE,
         "%s: argument '%s' is on %s, but '%s' is on %s; move both to one device with to()",
         public_name(op), op.args[arg].name, device.name.c_str(), op.args[0].name,
         first.name.c_str());
}

Device &Call::find_device(const OpDef &op, const yoke_arg *args)
{
    Device *first = nullptr;
    const auto look = [&](int i, const yoke_tensor *x) {
        if (!x) fail_missing(op, i, "NULL");
        if (!first) first = x->device;
        // copy_ is the only op across devices.
        if (x->device != first && &op != &kOps[YOKE_OP_COPY_])
            fail_apart(op, i, *x->device, *first);
    };
    for (int i = 0; i < op.arg_count; ++i) {
        const yoke_arg &value = args[i];
        const ArgType type = op.args[i].type;
        if (value.kind == YOKE_ARG_TENSOR) [[likely]]
            look(i, value.v.tensor);
        else if (value.kind == YOKE_ARG_TENSORS)
            for (int k = 0; k < value.count; ++k) look(i, value.v.tensors[k]);
        else if (type == ArgType::kTensor || type == ArgType::kMut ||
                 (type == ArgType::kOperand && !is_scalar(value)))
            fail_missing(op, i, "missing");
    }
    return first ? *first : current_device();
}

Call::Call(const OpDef &op, int32_t number, yoke_arg *args)
    : op_(op), number_(number), args_(args), plan_(op, args, find_device(op, args))
{
}

// Raises if x must not change in place: a leaf that requires grad while the tape records, a view of such a leaf, or an
// expanded tensor.
static void check_changeable(const OpDef &op, int arg, const yoke_tensor &x)
{
    const yoke_tensor *base = x.is_view ? base_of(x) : nullptr;
    if (base && grad_enabled() && base->requires_grad() && is_leaf(*base))
        fail(
            YOKE_E_STATE,
            "%s: argument '%s' is a view of a leaf that requires grad and cannot change in place while the tape records; use no_grad(), or an op that returns a new tensor",
            public_name(op), op.args[arg].name);
    if (grad_enabled() && x.requires_grad() && is_leaf(x))
        fail(
            YOKE_E_STATE,
            "%s: argument '%s' is a leaf that requires grad and cannot change in place while the tape records; use no_grad(), or an op that returns a new tensor",
            public_name(op), op.args[arg].name);
    if (const int axis = expanded_axis(x); axis >= 0)
        fail(
            YOKE_E_VALUE,
            "%s: argument '%s' is expanded: axis %d has %lld elements in one place of memory; clone() it first",
            public_name(op), op.args[arg].name, axis, static_cast<long long>(x.shape_[axis]));
}

void Call::check_written()
{
    for (int i = 0; i < op_.arg_count; ++i)
        if (op_.args[i].type == ArgType::kMut) {
            check_changeable(op_, i, *args_[i].v.tensor);
            separate_overlaps(i);
        }
}

// Returns whether an op writes at indices, and so not element by element.
static bool writes_by_index(const OpDef &op)
{
    for (int i = 0; i < op.arg_count; ++i)
        if (op.args[i].role == ArgRole::kIndex) return true;
    return false;
}

// Copies inputs that share memory with the written argument. An input with exactly the argument's elements stays, if
// the op works element by element.
void Call::separate_overlaps(int written)
{
    const yoke_tensor &x = *args_[written].v.tensor;
    for (int i = 0; i < op_.arg_count; ++i) {
        if (i == written) continue;
        if (args_[i].kind == YOKE_ARG_TENSORS) plan_.separate_list(i, x);
        if (args_[i].kind != YOKE_ARG_TENSOR) continue;
        const yoke_tensor &y = *args_[i].v.tensor;
        const bool same_elements = x.data == y.data && same(x.shape(), y.shape()) &&
                                   same(x.strides(), y.strides()) && !writes_by_index(op_);
        if (!same_elements && shares_memory(x, y)) plan_.replace(i, ops::clone(y));
    }
}

void Call::collect_tensors()
{
    const bool recording = (op_.vjp || op_.in_place_of >= 0) && grad_enabled();
    each_tensor([this, recording](int i, yoke_tensor *x) {
        tensors_.push_back(x);
        if (!recording || !x) return;
        if (x->is_view) [[unlikely]]
            renew_view(public_name(op_), *x);
        if (x->requires_grad()) needs_ |= 1u << i;
    });
    if (needs_ && op_.mut_result >= 0) check_gradient_of_written(*args_[op_.mut_result].v.tensor);
}

// Forgets the need for a gradient if the written tensor x is not floating. Raises YOKE_E_UNSUPPORTED if x is a view
// into which no write can be recorded.
void Call::check_gradient_of_written(const yoke_tensor &x)
{
    if (!is_floating(x.dtype))
        needs_ = 0;  // no gradient flows through integers either
    else
        check_written_view(public_name(op_), op_.args[op_.mut_result].name, x);
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
                       tf32_flag() | determinism_flag() | cudnn.flags,
                       cudnn.benchmark_limit,
                       cudnn.workspace_limit};
    if (Scope *scope = Scope::of_thread()) [[unlikely]]
        return launch_in(*scope, record, {storages.data(), count});
    issue(op_, record, device, {storages.data(), count});
}

void Call::launch_in(Scope &scope, yoke_launch &record, std::span<Storage *const> storages) const
{
    // An op with its result in an argument makes no memory.
    const bool is_in_place =
        op_.in_place_of >= 0 && plan_.results_[0].get() == args_[op_.mut_result].v.tensor;
    const size_t fresh = is_in_place ? storages.size() : tensors_.size();
    scope.launch(op_, record, plan_.device_, storages, fresh);
}

void Call::record()
{
    std::span<const Tensor> results(plan_.results_, static_cast<size_t>(plan_.result_count_));
    yoke_tensor *written = op_.mut_result >= 0 ? args_[op_.mut_result].v.tensor : nullptr;
    const bool forgets = &op_ == &kOps[YOKE_OP_COPY_] || &op_ == &kOps[YOKE_OP_FILL_];
    if (written && written->is_view && forgets) {
        // The view's former values have no part in the new values; its base has their history.
        written->node = nullptr;
        if (!(needs_ & ~1u)) return record_write(*written, nullptr, 0);
    }
    Ref<OpNode> node =
        OpNode::make(op_, args_, {tensors_.data(), tensors_.size()}, results, needs_);
    if (written) record_write(*written, node, 0);
    for (int k = 0; k < plan_.result_count_; ++k)
        if (op_.results[k] == ResultKind::kTensor && is_floating(plan_.results_[k]->dtype))
            set_node(*plan_.results_[k], node, static_cast<uint32_t>(k));
}

// Increments the version of every storage that the kernel has written, and notes the op as the writer.
void Call::mark_written()
{
    each_tensor([this](int i, yoke_tensor *x) {
        if (x && is_written(op_.args[i].type)) {
            x->storage->note_written(op_.name);
        }
    });
}

void Call::give(Tensor *results)
{
    if (op_.mut_result >= 0) results[0] = Tensor::share(args_[op_.mut_result].v.tensor);
    for (int k = 0; k < op_.returned_count && op_.mut_result < 0; ++k)
        results[k] = std::move(plan_.results_[k]);
}

// Computes the result of the op into the written argument `x`: directly if the dtype fits, else by a copy. If a
// gradient is wanted, calls take_history instead.
void Call::execute_in_place(Tensor *results)
{
    yoke_tensor &x = *args_[op_.mut_result].v.tensor;
    check_written();
    const OpDef &op = kOps[op_.in_place_of];
    if (grad_enabled()) collect_tensors();  // finds out whether a gradient is wanted
    if (needs_) {
        take_history(x);
    } else if (op.compose) {
        ops::copy_(x, new_value(x, args_));
    } else {
        op.infer(args_, plan_);
        check_result_fits(x);
        Tensor &result = plan_.results_[0];
        const bool direct = result->dtype == x.dtype;
        if (direct)
            result = Tensor::share(&x);
        else
            allocate_memory(*result);
        tensors_.clear();
        collect_tensors();
        if (x.numel) launch();
        if (direct)
            mark_written();
        else if (x.numel)
            ops::copy_(x, *result);
    }
    results[0] = Tensor::share(&x);
}

// Runs the op whose result is to replace x. Raises unless the result fits.
Tensor Call::new_value(yoke_tensor &x, yoke_arg *args)
{
    Tensor made;
    run(op_.in_place_of, args, &made);
    plan_.result(made->shape(), made->dtype);
    check_result_fits(x);
    return made;
}

// Makes the new value by the op, recorded; x takes the value and its history.
void Call::take_history(yoke_tensor &x)
{
    const OpDef &op = kOps[op_.in_place_of];
    yoke_arg args[kMaxArgs];
    std::copy_n(args_, op_.arg_count, args);
    // Copies of values that the gradient needs unchanged.
    Tensor held[kMaxArgs];
    uint32_t saved = op.compose ? ~0u : 0;  // a part of a composition may save any argument
    for (int i = 0; i < op.arg_count; ++i)
        if (needs_ >> i & 1) saved |= op.saves[i];
    for (int i = 0; i < op.arg_count; ++i)
        if ((saved >> i & 1) && args[i].kind == YOKE_ARG_TENSOR &&
            args[i].v.tensor->storage.get() == x.storage.get())
            args[i] = arg_tensor(*(held[i] = ops::clone(*args[i].v.tensor)));
    const NoAutocast as_given;  // the written tensor has its dtype already
    const Tensor made = ops::cast(new_value(x, args), x.dtype);
    {
        const NoGrad no_grad;
        ops::copy_(x, *made);
    }
    x.storage->note_writer(op_.name);
    Node *node = node_of(*made);
    if (node || x.is_view)
        record_write(x, Ref<Node>::share(node), made->output_index);
    else
        x.storage->rewrites.fetch_add(1, std::memory_order_relaxed);
}

void Call::check_result_fits(const yoke_tensor &x) const
{
    const yoke_tensor &result = *plan_.results_[0];
    if (!same(result.shape(), x.shape()))
        fail(YOKE_E_VALUE,
             "%s: the result has shape %s, but it replaces the %s; both must have the same shape",
             public_name(op_), to_string(result.shape()).c_str(), describe(x).c_str());
    if ((is_floating(result.dtype) && !is_floating(x.dtype)) ||
        (x.dtype == YOKE_BOOL && result.dtype != YOKE_BOOL))
        fail(YOKE_E_TYPE,
             "%s: the result has dtype %s, which does not fit into the written tensor's %s; use %s",
             public_name(op_), name(result.dtype), name(x.dtype),
             public_name(kOps[op_.in_place_of]));
}

void Call::execute(Tensor *results)
{
    if (op_.in_place_of >= 0) return execute_in_place(results);
    if (op_.mut_result >= 0) check_written();
    op_.infer(args_, plan_);
    if (plan_.result_count_ && plan_.sources_[0] == Plan::Source::kSelf) return give(results);
    collect_tensors();
    if (op_.cost != Cost::kView) {
        bool empty = plan_.result_count_ > 0;
        for (int k = 0; k < plan_.result_count_; ++k) {
            allocate_memory(*plan_.results_[k]);
            empty &= plan_.results_[k]->numel == 0;
        }
        if (!empty) launch();
        if (plan_.result_count_ == 0) mark_written();
    }
    if (needs_) record();
    give(results);
}

}  // namespace yoke
