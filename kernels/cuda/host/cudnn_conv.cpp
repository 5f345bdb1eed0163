#include "kernels/cuda/host/cudnn_conv.h"

#include <algorithm>
#include <climits>
#include <cstdio>

#include "core/backend/ops.inc"
#include "kernels/cuda/host/cudnn.h"
#include "kernels/cuda/host/cudnn_conv_graph.h"
#include "kernels/cuda/host/cudnn_status.h"
#include "kernels/cuda/host/cudnn_worker.h"
#include "kernels/cuda/host/relaxed.h"

namespace yoke::cuda {

namespace {

using kernels::Conv;
using kernels::ConvKind;

constexpr uint64_t kWorkspaceLimit = 256 << 20;

int64_t alignment_of(const void *address)
{
    const uint64_t bits = reinterpret_cast<uintptr_t>(address) | 16;
    return static_cast<int64_t>(bits & -bits);
}

// A convolution, or some images of one, whose weight lies in cuDNN's order.
class Call {
public:
    Call(const yoke_launch *launch, CudnnWorker &worker, const Conv &conv, const void *bias)
        : launch_(launch), worker_(worker), conv_(conv), bias_(bias), terms_(terms())
    {
    }

    // Whether there is a plan; makes it if it has to.
    yoke_status prepare(bool *exists)
    {
        const CudnnKey key = this->key();
        entry_ = worker_.find(key);
        yoke_status status = YOKE_OK;
        if (!entry_) {
            entry_ = &worker_.room_for(key);
            status = make_plan(kWorkspaceLimit, entry_->plan, &entry_->exists);
        }
        *exists = entry_->exists;
        return status;
    }
    // Where memory lacks for a plan's workspace, by the next one that wants less.
    yoke_status run()
    {
        bool exists = false;
        if (const yoke_status lost = prepare(&exists)) return lost;
        if (!exists)
            return fail(YOKE_E_OOM, 0, "%s: cuDNN made a plan, and then none",
                        op_name(launch_->op));
        CudnnPlan spare;
        const CudnnPlan *plan = &entry_->plan;
        for (;;) {
            Scratch scratch(launch_);
            const yoke_status status = plan->workspace ? scratch.reserve(plan->workspace) : YOKE_OK;
            if (!status) return execute(*plan, scratch.data());
            if (status != YOKE_E_OOM) return status;
            const uint64_t wanted = plan->workspace;
            if (const yoke_status lost = make_plan(wanted - 1, spare, &exists)) return lost;
            if (!exists) return status;
            tell_room(wanted, spare.workspace);
            plan = &spare;
        }
    }

private:
    ConvTerms terms() const
    {
        return {{alignment_of(conv_.x), alignment_of(conv_.weight), alignment_of(conv_.out),
                 alignment_of(bias_)},
                bias_ != nullptr};
    }
    CudnnKey key() const;
    EngineRules rules(uint64_t limit) const
    {
        const bool is_f32 = conv_.dtype == YOKE_F32;
        return {is_f32, is_f32 && (launch_->flags & YOKE_LAUNCH_TF32), true, limit};
    }
    yoke_status make_plan(uint64_t limit, CudnnPlan &plan, bool *exists);
    yoke_status execute(const CudnnPlan &plan, void *workspace);
    void describe(char (&text)[160]) const;
    void tell_room(uint64_t wanted, uint64_t less) const;

    const yoke_launch *launch_;
    CudnnWorker &worker_;
    const Conv conv_;
    const void *bias_;
    const ConvTerms terms_;
    CudnnEntry *entry_ = nullptr;
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
             terms_.bias,
             rules(0).tf32}};
}

void Call::describe(char (&text)[160]) const
{
    constexpr const char *kKinds[] = {"", "gradient by data of ", "gradient by weight of "};
    const auto n = [](int64_t value) { return static_cast<long long>(value); };
    snprintf(text, sizeof text,
             "the %sconvolution of %lld x %lld x %lld x %lld by %lld x %lld x %lld x %lld",
             kKinds[static_cast<int>(conv_.kind)], n(conv_.n), n(conv_.c), n(conv_.h), n(conv_.w),
             n(conv_.o), n(conv_.c / conv_.groups), n(conv_.kh), n(conv_.kw));
}

// Another library's capture may forbid what making a plan does: it may compile, and load what it compiled.
yoke_status Call::make_plan(uint64_t limit, CudnnPlan &plan, bool *exists)
{
    const Relaxed relaxed;
    Graph graph(*cudnn_calls(), worker_.target());
    build_conv(graph, conv_, terms_);
    CudnnFailure why;
    *exists = find_plans(graph, rules(limit), 1, &plan, &why) > 0;
    // That an engine does not support something is why there are others.
    const bool is_usual = CUDNN_STATUS_CATEGORY(why.status) == CUDNN_STATUS_NOT_SUPPORTED;
    if (why && !is_usual) return cudnn_pass_over(launch_, why);
    if (*exists) return YOKE_OK;
    char text[160], line[1024];
    describe(text);
    snprintf(
        line, sizeof line,
        "cuda:%d: cuDNN has no engine for %s that may serve here%s%s; Yoke's own kernels do it",
        static_cast<const Device *>(launch_->device)->index, text, *why.said ? ": " : "", why.said);
    cudnn_warn(CudnnReason::kNoEngine, line);
    return YOKE_OK;
}

void Call::tell_room(uint64_t wanted, uint64_t less) const
{
    char text[160], line[320];
    describe(text);
    snprintf(
        line, sizeof line,
        "cuda:%d: there is no memory for a workspace of %llu bytes for %s; the next plan takes %llu",
        static_cast<const Device *>(launch_->device)->index,
        static_cast<unsigned long long>(wanted), text, static_cast<unsigned long long>(less));
    cudnn_warn(CudnnReason::kNoRoom, line);
}

yoke_status Call::execute(const CudnnPlan &plan, void *workspace)
{
    const Relaxed relaxed(!entry_->is_tried);  // the first run loads code
    const CudnnWorker::Operand operands[] = {
        {kConvX, conv_.x}, {kConvWeight, conv_.weight}, {kConvOut, conv_.out}, {kConvBias, bias_}};
    const bool adds = bias_ && conv_.kind == ConvKind::kForward;
    const CudnnFailure failure = worker_.run(plan, operands, adds ? 4 : 3, workspace);
    entry_->is_tried = true;
    if (!failure) [[likely]]
        return YOKE_OK;
    char text[160];
    describe(text);
    return cudnn_check(launch_, failure, "%s", text);
}

// ---- images ---------------------------------------------------------------------------------------------------------

// cuDNN counts elements in 32 bits: how many images it takes at once.
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

// run(call) for parts of as many images, and for the rest.
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

// An operand of as many elements elsewhere, or in another order.
struct View {
    yoke_operand operand;
    int64_t strides[4];

    View(const yoke_operand &like, const void *data, const int64_t (&wanted)[4]) : operand(like)
    {
        std::copy(wanted, wanted + 4, strides);
        operand.data = const_cast<void *>(data);
        operand.strides = strides;
        operand.flags &= ~YOKE_OPERAND_CONTIGUOUS;
    }
    View(const View &) = delete;
    View &operator=(const View &) = delete;
};

// Of one tap, or of one channel, both orders are the same.
bool is_reordered(const Conv &c)
{
    return c.kh * c.kw > 1 && c.c > c.groups;
}

const yoke_operand &weight_operand(const yoke_launch *launch, ConvKind kind)
{
    return launch->operands[kind == ConvKind::kWeight ? 2 : 1];
}

// The gradient by data is added to it.
yoke_status put_bias(const yoke_launch *launch, const Conv &c, CopyOperand copy)
{
    const yoke_operand &x = launch->operands[launch->operand_count - 1];
    const View bias(x, c.bias, {0, launch->operands[2].strides[0], 0, 0});
    return copy(launch, x, bias.operand);
}

yoke_status run_all(const yoke_launch *launch, CudnnWorker &worker, Conv conv, CopyOperand copy)
{
    const yoke_operand &weight = weight_operand(launch, conv.kind);
    const int64_t depth = conv.c / conv.groups, row = conv.kw * depth;
    Scratch room(launch);
    if (is_reordered(conv)) {
        const uint64_t size = conv.dtype == YOKE_F32 ? 4 : 2;
        if (const yoke_status status = room.reserve(static_cast<uint64_t>(weight.numel) * size))
            return status;
        conv.weight = room.data();
    }
    const View reordered(weight, room.data(), {conv.kh * row, 1, row, depth});
    const bool moves = is_reordered(conv), writes = conv.kind == ConvKind::kWeight;
    yoke_status status = moves && !writes ? copy(launch, reordered.operand, weight) : YOKE_OK;
    if (!status && conv.bias && conv.kind == ConvKind::kData) status = put_bias(launch, conv, copy);
    if (!status)
        status = each_part(launch, worker, conv, conv.bias, [](Call &call) { return call.run(); });
    return !status && moves && writes ? copy(launch, weight, reordered.operand) : status;
}

bool is_enabled()
{
    static const bool asked = [] {
        const char *setting = g_host->config("YOKE_CUDNN_ENABLED");
        return setting && *setting == '1';
    }();
    return asked;
}

// What cuDNN is asked for at all: nothing that is empty. The gradient by weight is a sum over images, which do not go
// in parts.
bool is_taken(const Conv &c)
{
    const int64_t x = c.n * c.c * c.h * c.w, out = c.n * c.o * c.oh * c.ow;
    if (c.dtype == YOKE_F64 || x == 0 || out == 0 || c.kh * c.kw == 0) return false;
    return images_at_once(c) >= (c.kind == ConvKind::kWeight ? c.n : 1);
}

}  // namespace

yoke_status cudnn_prepare(Device &device)
{
    if (!is_enabled()) return YOKE_OK;
    yoke_launch launch{};
    launch.op = YOKE_OP__CONV;
    launch.device = &device;
    return CudnnLoan(&launch).status();
}

yoke_status cudnn_convolve(const yoke_launch *launch, const Conv &conv, CopyOperand copy,
                           bool *done)
{
    *done = false;
    if (!is_enabled() || !is_taken(conv)) return YOKE_OK;
    CudnnLoan loan(launch);
    if (loan.status() || !loan.worker()) return loan.status();
    CudnnWorker &worker = *loan.worker();
    Conv planned = conv;  // plans are for the weight that will be read: aligned as scratch is
    if (is_reordered(conv)) planned.weight = nullptr;
    if (const yoke_status status = has_plans(launch, worker, planned, conv.bias, done))
        return status;
    return *done ? run_all(launch, worker, conv, copy) : YOKE_OK;
}

}  // namespace yoke::cuda
