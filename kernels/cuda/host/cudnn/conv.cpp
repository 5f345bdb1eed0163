#include "kernels/cuda/host/cudnn/conv.h"

#include <algorithm>
#include <climits>
#include <cstdio>

#include "kernels/cuda/host/cudnn/call.h"
#include "kernels/cuda/host/cudnn/conv_graph.h"
#include "kernels/cuda/host/cudnn/status.h"

namespace yoke::cuda {

namespace {

using kernels::Conv;
using kernels::ConvKind;

// Convolution, or some of its images, with a weight in cuDNN's order.
class Call final : public CudnnCall {
public:
    Call(const yoke_launch *launch, CudnnWorker &worker, const Conv &conv, const void *bias)
        : CudnnCall(launch, worker), conv_(conv), bias_(bias), terms_(terms())
    {
    }

private:
    ConvTerms terms() const
    {
        return {{alignment_of(conv_.x), alignment_of(conv_.weight), alignment_of(conv_.out),
                 alignment_of(bias_)},
                bias_ != nullptr};
    }
    CudnnKey key() const override;
    EngineRules rules(uint64_t limit) const override
    {
        const bool is_f32 = conv_.dtype == YOKE_F32;
        return {is_f32, is_f32 && (launch_->flags & YOKE_LAUNCH_TF32), is_in_order(), limit};
    }
    uint64_t adds_to() const override;
    // Returns whether sums must come in order. Only in a benchmark may they come in any order, if the flags allow
    // it: cuDNN's first plans in order are as fast as its first plans.
    bool is_in_order() const
    {
        return !is_benchmark() || !(launch_->flags & YOKE_LAUNCH_CUDNN_NONDETERMINISTIC);
    }
    void build(Graph &graph) const override { build_conv(graph, conv_, terms_); }
    int operands(CudnnWorker::Operand (&all)[kMostOperands]) const override;
    void describe(Text &text) const override;

    const Conv conv_;
    const void *bias_;
    const ConvTerms terms_;
};

CudnnKey Call::key() const
{
    const Conv &c = conv_;
    return {{launch_->op,
             static_cast<int64_t>(c.kind),
             c.dtype,
             c.n,
             c.c,
             c.h,
             c.w,
             c.o,
             c.oh,
             c.ow,
             c.kh,
             c.kw,
             c.stride[0],
             c.stride[1],
             c.padding[0],
             c.padding[1],
             c.dilation[0],
             c.dilation[1],
             c.groups,
             terms_.alignment[0],
             terms_.alignment[1],
             terms_.alignment[2],
             terms_.alignment[3],
             terms_.bias}};
}

int Call::operands(CudnnWorker::Operand (&all)[kMostOperands]) const
{
    all[0] = {kConvX, conv_.x};
    all[1] = {kConvWeight, conv_.weight};
    all[2] = {kConvOut, conv_.out};
    all[3] = {kConvBias, bias_};
    return bias_ && conv_.kind == ConvKind::kForward ? 4 : 3;
}

// Returns the result's bytes for a gradient by data with a bias, because its run adds to the bias; else 0.
uint64_t Call::adds_to() const
{
    if (!bias_ || conv_.kind != ConvKind::kData) return 0;
    const Conv &c = conv_;
    return static_cast<uint64_t>(c.n * c.c * c.h * c.w * (c.dtype == YOKE_F32 ? 4 : 2));
}

void Call::describe(Text &text) const
{
    constexpr const char *kKinds[] = {"", "gradient by data of ", "gradient by weight of "};
    const auto n = [](int64_t value) { return static_cast<long long>(value); };
    snprintf(text, sizeof text,
             "the %sconvolution of %lld x %lld x %lld x %lld by %lld x %lld x %lld x %lld",
             kKinds[static_cast<int>(conv_.kind)], n(conv_.n), n(conv_.c), n(conv_.h), n(conv_.w),
             n(conv_.o), n(conv_.c / conv_.groups), n(conv_.kh), n(conv_.kw));
}

// ---- images ---------------------------------------------------------------------------------------------------------

// Returns how many images cuDNN can process at once. cuDNN counts elements in 32 bits.
int64_t images_at_once(const Conv &c)
{
    return INT_MAX / std::max(c.c * c.h * c.w, c.o * c.oh * c.ow);
}

Conv images_of(const Conv &conv, int64_t first, int64_t count)
{
    const int64_t size = conv.dtype == YOKE_F32 ? 4 : 2;
    Conv part = conv;
    part.n = count;
    part.x = static_cast<char *>(conv.x) + first * conv.c * conv.h * conv.w * size;
    part.out = static_cast<char *>(conv.out) + first * conv.o * conv.oh * conv.ow * size;
    return part;
}

// Calls run(call) for parts of at most images_at_once() images. Returns the first failure.
template <class F>
yoke_status each_part(const yoke_launch *launch, CudnnWorker &worker, const Conv &conv,
                      const void *bias, const F &run)
{
    const int64_t most = images_at_once(conv);
    for (int64_t first = 0; first < conv.n; first += most) {
        Call call(launch, worker, images_of(conv, first, std::min(most, conv.n - first)), bias);
        if (const yoke_status status = run(call)) return status;
    }
    return YOKE_OK;
}

yoke_status has_plans(const yoke_launch *launch, CudnnWorker &worker, const Conv &conv,
                      const void *bias, bool *all)
{
    *all = true;
    return each_part(launch, worker, conv, bias, [&](Call &call) {
        bool exists = false;
        const yoke_status status = *all ? call.prepare(&exists) : YOKE_OK;
        *all = *all && exists;
        return status;
    });
}

// ---- weights and biases ---------------------------------------------------------------------------------------------

// Returns whether the weight's order differs. With a single tap, or a single channel, both orders are the same.
bool is_reordered(const Conv &c)
{
    return c.kh * c.kw > 1 && c.c > c.groups;
}

const yoke_operand &weight_operand(const yoke_launch *launch, ConvKind kind)
{
    return launch->operands[kind == ConvKind::kWeight ? 2 : 1];
}

// Copies the bias to all elements of the result. cuDNN then adds the gradient by data.
yoke_status put_bias(const yoke_launch *launch, const Conv &c, CopyOperand copy)
{
    const yoke_operand &x = launch->operands[launch->operand_count - 1];
    const int64_t strides[] = {0, launch->operands[2].strides[0], 0, 0};
    const View bias(x, c.bias, strides);
    return copy(launch, x, bias.operand);
}

// Runs a convolution in parts. Copies a weight whose order differs from cuDNN's, and puts the bias under a gradient
// by data. If memory for the copy or a workspace is missing, returns YOKE_E_OOM with *has_room false.
yoke_status run_all(const yoke_launch *launch, CudnnWorker &worker, Conv conv, CopyOperand copy,
                    bool *has_room)
{
    const yoke_operand &weight = weight_operand(launch, conv.kind);
    const int64_t depth = conv.c / conv.groups, row = conv.kw * depth;
    Scratch room(launch);
    if (is_reordered(conv)) {
        const uint64_t size = conv.dtype == YOKE_F32 ? 4 : 2;
        const yoke_status status = room.try_reserve(static_cast<uint64_t>(weight.numel) * size);
        *has_room = status != YOKE_E_OOM;
        if (status) return status;
        conv.weight = room.data();
    }
    const int64_t strides[] = {conv.kh * row, 1, row, depth};
    const View reordered(weight, room.data(), strides);
    const bool moves = is_reordered(conv), writes = conv.kind == ConvKind::kWeight;
    yoke_status status = moves && !writes ? copy(launch, reordered.operand, weight) : YOKE_OK;
    if (!status && conv.bias && conv.kind == ConvKind::kData) status = put_bias(launch, conv, copy);
    if (!status)
        status = each_part(launch, worker, conv, conv.bias,
                           [&](Call &call) { return call.run(has_room); });
    return !status && moves && writes ? copy(launch, weight, reordered.operand) : status;
}

// Returns whether cuDNN may get a convolution. The launch must not forbid cuDNN, and the dtype must not be f64. The
// convolution must not be empty, and no size may exceed 32 bits. The gradient by weight is a sum over images, so its
// images cannot go in parts.
bool is_taken(const yoke_launch *launch, const Conv &c)
{
    if (launch->flags & YOKE_LAUNCH_CUDNN_OFF) return false;
    const int64_t x = c.n * c.c * c.h * c.w, out = c.n * c.o * c.oh * c.ow;
    const int64_t weight = c.o * (c.c / c.groups) * c.kh * c.kw;
    if (c.dtype == YOKE_F64 || x == 0 || out == 0 || weight == 0 || weight > INT_MAX) return false;
    return images_at_once(c) >= (c.kind == ConvKind::kWeight ? c.n : 1);
}

}  // namespace

yoke_status cudnn_convolve(const yoke_launch *launch, const Conv &conv, CopyOperand copy,
                           bool *done)
{
    *done = false;
    if (!is_taken(launch, conv)) return YOKE_OK;
    CudnnLoan loan(launch);
    if (loan.status() || !loan.worker()) return loan.status();
    CudnnWorker &worker = *loan.worker();
    Conv planned = conv;  // plans are for the weight that will be read: aligned as scratch is
    if (is_reordered(conv)) planned.weight = nullptr;
    if (const yoke_status status = has_plans(launch, worker, planned, conv.bias, done))
        return status;
    if (!*done) return YOKE_OK;
    bool has_room = true;
    const yoke_status status = run_all(launch, worker, conv, copy, &has_room);
    if (has_room) return status;
    Call(launch, worker, planned, conv.bias).tell_no_room(kOwnKernels);
    *done = false;  // they write all of the result anew
    return YOKE_OK;
}

}  // namespace yoke::cuda
