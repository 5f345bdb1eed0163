#include "kernels/cuda/host/cudnn/attention.h"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <iterator>

#include "core/backend/ops.inc"
#include "kernels/common/kernel.h"
#include "kernels/cuda/host/cudnn/attention_heads.h"
#include "kernels/cuda/host/cudnn/call.h"
#include "kernels/cuda/host/failures.h"

namespace yoke::cuda {

namespace {

using kernels::divide_up;
using Name = AttentionName;

// Writes "the attention of …" or "the gradient of attention of …".
void describe_attention(const AttentionHeads &heads, char (&text)[160])
{
    const AttentionShape &s = heads.shape;
    const auto n = [](int64_t value) { return static_cast<long long>(value); };
    snprintf(text, sizeof text,
             "the %sattention of %lld x %lld x %lld x %lld over %lld x %lld x %lld",
             heads.backward ? "gradient of " : "", n(s.batch), n(s.heads), n(s.queries), n(s.width),
             n(s.key_heads), n(s.keys), n(s.value_width));
}

// ---- a call ---------------------------------------------------------------------------------------------------------

// Attention of some heads, or its gradient.
class Call final : public CudnnCall {
public:
    Call(const yoke_launch *launch, CudnnWorker &worker, const AttentionHeads &heads)
        : CudnnCall(launch, worker), heads_(heads)
    {
    }

private:
    CudnnKey key() const override;
    EngineRules rules(uint64_t limit) const override
    {
        return {false, false, !heads_.backward || heads_.deterministic, limit};
    }
    void build(Graph &graph) const override
    {
        if (heads_.backward)
            build_attention_backward(graph, heads_.shape, heads_.deterministic);
        else
            build_attention(graph, heads_.shape);
    }
    int operands(CudnnWorker::Operand (&all)[kMostOperands]) const override;
    uint64_t adds_to() const override { return heads_.accumulator_bytes(); }
    void describe(Text &text) const override { describe_attention(heads_, text); }
    void tell_none(const CudnnFailure &why, uint64_t refused) const override;

    const AttentionHeads heads_;
};

CudnnKey Call::key() const
{
    const AttentionShape &s = heads_.shape;
    static_assert(11 + 3 * kMostAttentionPlaces + 5 <= std::size(CudnnKey{}.words) - 2);
    CudnnKey key{{launch_->op, s.dtype, s.batch, s.heads, s.key_heads, s.queries, s.keys, s.width,
                  s.value_width, s.causal, s.statistics_alignment}};
    int64_t *word = key.words + 11;
    const auto add = [&](const HeadStrides &strides) {
        *word++ = strides.batch;
        *word++ = strides.head;
        *word++ = strides.row;
    };
    for (int i = 0; i < heads_.count(); ++i) add(s.*kAttentionPlaces[i].strides);
    if (!s.has_bias) return key;
    add(s.bias);
    *word++ = s.bias_alignment;
    *word = s.has_bias;
    return key;
}

int Call::operands(CudnnWorker::Operand (&all)[kMostOperands]) const
{
    alignas(16) static constexpr float kLeast = kMaskedScore, kUnit = 1;
    int n = 0;
    if (heads_.accumulator_bytes()) all[n++] = {Name::kAccumulator, heads_.accumulator};
    for (int i = 0; i < heads_.count(); ++i) all[n++] = {kAttentionPlaces[i].name, heads_.data[i]};
    all[n++] = {Name::kStatistics, heads_.statistics};
    all[n++] = {Name::kScale, &heads_.scale};
    if (heads_.shape.causal) all[n++] = {Name::kMasked, &kLeast};
    if (heads_.shape.has_bias) all[n++] = {Name::kBias, heads_.bias_address()};
    if (!heads_.backward) return n;
    all[n++] = {Name::kRowSum, heads_.row_sum};
    all[n++] = {Name::kOne, &kUnit};
    return n;
}

// Warns only if no smaller part can have an engine either.
void Call::tell_none(const CudnnFailure &why, uint64_t refused) const
{
    Text text;
    describe(text);
    if (!refused) tell_no_engine(launch_, text, why);
}

// ---- parts ----------------------------------------------------------------------------------------------------------

// Heads of keys processed at once: some heads of one batch, or all heads of several batches. All parts except the
// last are alike.
struct Parts {
    int64_t batches, heads;

    Parts(const AttentionShape &s, int64_t most)
        : batches(even(s.batch, std::max<int64_t>(most / s.key_heads, 1))),
          heads(even(s.key_heads, most))
    {
    }
    static int64_t even(int64_t count, int64_t most)
    {
        return divide_up(count, divide_up(count, most));
    }
    int64_t count() const { return batches * heads; }
    AttentionHeads first(const AttentionHeads &all) const { return all.part(0, batches, 0, heads); }

    // Calls run(heads) for each part. Returns the first failure.
    template <class F>
    yoke_status each(const AttentionHeads &all, const F &run) const
    {
        const AttentionShape &s = all.shape;
        for (int64_t b = 0; b < s.batch; b += batches)
            for (int64_t h = 0; h < s.key_heads; h += heads)
                if (const yoke_status status = run(all.part(b, std::min(batches, s.batch - b), h,
                                                            std::min(heads, s.key_heads - h))))
                    return status;
        return YOKE_OK;
    }
};

// Returns the bytes that the gradient of a head needs besides its results: gradients of scores, or sums of the
// gradient of query.
uint64_t bytes_of_head(const AttentionHeads &a)
{
    const AttentionShape &s = a.shape;
    return static_cast<uint64_t>(s.queries * (a.deterministic ? s.keys * 2 : s.width * 4));
}

// Returns how many heads of keys to begin with. A gradient takes as many as its limit of memory allows. Halves the
// number until cuDNN can count the elements of a part in 32 bits; returns 0 if a single head is too large.
int64_t most_at_once(const AttentionHeads &a, uint64_t limit)
{
    int64_t most = a.shape.batch * a.shape.key_heads;
    if (a.backward)
        most = static_cast<int64_t>(
            std::clamp<uint64_t>(limit / bytes_of_head(a), 1, static_cast<uint64_t>(most)));
    for (;; most /= 2) {
        if (most == 0) return 0;
        const Parts parts(a.shape, most);
        if (parts.first(a).reach() <= INT_MAX) return parts.count();
    }
}

// Rounds up to a multiple of 256, so following data in the same memory is aligned like a workspace.
uint64_t padded(uint64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

// Attention of a launch, or its gradient. The parts run in sequence, in the same memory.
class Attention {
public:
    Attention(const yoke_launch *launch, CudnnWorker &worker, const AttentionHeads &heads,
              const AttentionKernels &kernels)
        : launch_(launch),
          worker_(worker),
          kernels_(kernels),
          heads_(heads),
          copied_keys_(launch),
          copied_mask_(launch)
    {
    }
    yoke_status run(bool *done);

private:
    yoke_status copy_keys(bool *has_room);
    yoke_status copy_mask(bool *has_room);
    yoke_status find_room(const Parts &parts, Scratch &room, bool *has_room);
    yoke_status has_plans(const Parts &parts, bool *all, uint64_t *refused);
    yoke_status run_parts(const Parts &parts, bool *has_room);
    yoke_status clear_accumulator(const AttentionHeads &part) const;
    yoke_status try_parts(const Parts &parts, bool *done, uint64_t *refused);
    void tell_refused(uint64_t refused) const;

    const yoke_launch *launch_;
    CudnnWorker &worker_;
    const AttentionKernels &kernels_;
    AttentionHeads heads_;
    Scratch copied_keys_, copied_mask_;
    bool lacks_memory_ = false;
};

// Reserves memory for a gradient's sums of a part. If memory is missing, *has_room is false, with YOKE_E_OOM.
yoke_status Attention::find_room(const Parts &parts, Scratch &room, bool *has_room)
{
    if (!heads_.backward) return YOKE_OK;
    const AttentionHeads part = parts.first(heads_);
    const uint64_t sums = padded(part.rows() * sizeof(float));
    const yoke_status status = room.try_reserve(sums + part.accumulator_bytes());
    *has_room = status != YOKE_E_OOM;
    heads_.row_sum = room.data();
    heads_.accumulator = room.as<char>() + sums;
    return status;
}

yoke_status Attention::has_plans(const Parts &parts, bool *all, uint64_t *refused)
{
    *all = true;
    return parts.each(heads_, [&](const AttentionHeads &part) {
        if (!*all) return YOKE_OK;
        Call call(launch_, worker_, part);
        const yoke_status status = call.prepare(all);
        *refused = call.refused();
        return status;
    });
}

yoke_status Attention::clear_accumulator(const AttentionHeads &part) const
{
    const uint64_t bytes = part.accumulator_bytes();
    if (!bytes) return YOKE_OK;
    const cudaError_t error =
        cudaMemsetAsync(part.accumulator, 0, bytes, static_cast<cudaStream_t>(launch_->stream));
    return error ? call_failed(launch_, error, "cudaMemsetAsync of %llu bytes",
                               static_cast<unsigned long long>(bytes))
                 : YOKE_OK;
}

yoke_status Attention::run_parts(const Parts &parts, bool *has_room)
{
    return parts.each(heads_, [&](const AttentionHeads &part) {
        const yoke_status status = clear_accumulator(part);
        return status ? status : Call(launch_, worker_, part).run(has_room);
    });
}

// Copies keys and values shared by heads, once for every head, because a gradient needs them for each head. Without
// such a need, does nothing. If memory is missing, *has_room is false, with YOKE_E_OOM.
yoke_status Attention::copy_keys(bool *has_room)
{
    if (!heads_.copies_keys || copied_keys_.data()) return YOKE_OK;
    const yoke_operand *o = launch_->operands;
    const uint64_t first = padded(static_cast<uint64_t>(o[2].numel) * 2);
    const yoke_status status =
        copied_keys_.try_reserve(first + static_cast<uint64_t>(o[3].numel) * 2);
    *has_room = status != YOKE_E_OOM;
    if (status) return status;
    heads_.data[1] = copied_keys_.as<char>();
    heads_.data[2] = copied_keys_.as<char>() + first;
    for (int i = 1; i <= 2; ++i) {
        int64_t strides[YOKE_MAX_NDIM];
        const yoke_operand &from = o[1 + i];
        dense_strides(from, strides);
        const View to(from, heads_.data[i], strides);
        if (const yoke_status failed = kernels_.copy(launch_, to.operand, from)) return failed;
    }
    return YOKE_OK;
}

// Copies a mask that cuDNN cannot read as it lies. If memory is missing, *has_room is false, with YOKE_E_OOM.
yoke_status Attention::copy_mask(bool *has_room)
{
    if (!heads_.shape.has_bias || heads_.bias) return YOKE_OK;
    const yoke_status status =
        copied_mask_.try_reserve(static_cast<uint64_t>(heads_.mask.elements()) * 2);
    *has_room = status != YOKE_E_OOM;
    if (status) return status;
    heads_.bias = copied_mask_.as<char>();
    return heads_.mask.copy(heads_.bias, [&](const yoke_operand &to, const yoke_operand &from) {
        return (from.dtype == YOKE_BOOL ? kernels_.write_bias : kernels_.copy)(launch_, to, from);
    });
}

// Runs all parts; *done is whether they ran. If a part has no plan, *refused is the smallest workspace above the
// limit, or 0. If memory is missing, *refused is twice the limit. Both cases return YOKE_OK.
yoke_status Attention::try_parts(const Parts &parts, bool *done, uint64_t *refused)
{
    bool all = false, has_room = true;
    if (const yoke_status status = has_plans(parts, &all, refused); status || !all) return status;
    Scratch sums(launch_);
    yoke_status status = copy_keys(&has_room);
    if (!status) status = copy_mask(&has_room);
    if (!status) status = find_room(parts, sums, &has_room);
    if (!status) status = run_parts(parts, &has_room);
    *done = !status;
    if (has_room) return status;
    Call(launch_, worker_, parts.first(heads_))
        .tell_no_room("smaller parts, or Yoke's own kernels, compute the result");
    lacks_memory_ = true;
    // The caller then tries parts of half the size.
    *refused = 2 * std::clamp<uint64_t>(launch_->workspace_limit, 1, UINT64_MAX / 2);
    return YOKE_OK;
}

// Warns if the workspace of a single head is above the limit. Other reasons have had their warnings.
void Attention::tell_refused(uint64_t refused) const
{
    char text[160];
    describe_attention(heads_, text);
    if (refused && !lacks_memory_) tell_limit(launch_, text, refused);
}

yoke_status Attention::run(bool *done)
{
    const uint64_t limit = launch_->workspace_limit;
    int64_t most = most_at_once(heads_, limit);
    uint64_t refused = 0;
    while (most > 0) {
        const Parts parts(heads_.shape, most);
        refused = 0;
        const yoke_status status = try_parts(parts, done, &refused);
        if (status) return status;
        if (*done)
            return heads_.shape.has_bias && !heads_.backward ? kernels_.settle_rows(launch_)
                                                             : YOKE_OK;
        if (!refused) return YOKE_OK;
        // Workspaces grow with the size of a part.
        const double share = static_cast<double>(limit) / static_cast<double>(refused);
        most = std::min(parts.count() - 1,
                        static_cast<int64_t>(static_cast<double>(parts.count()) * share));
    }
    tell_refused(refused);
    return YOKE_OK;
}

}  // namespace

yoke_status cudnn_attend(const yoke_launch *launch, const AttentionKernels &kernels, bool *done)
{
    *done = false;
    AttentionHeads heads;
    if (launch->flags & YOKE_LAUNCH_CUDNN_OFF) return YOKE_OK;
    const AttentionFit fit = heads.read(launch);
    if (fit == AttentionFit::kForeign) return YOKE_OK;
    CudnnLoan loan(launch);
    if (loan.status() || !loan.worker()) return loan.status();
    if (fit == AttentionFit::kFits)
        return Attention(launch, *loan.worker(), heads, kernels).run(done);
    char text[160];
    describe_attention(heads, text);
    tell_fit(launch, fit, text);
    return YOKE_OK;
}

}  // namespace yoke::cuda
