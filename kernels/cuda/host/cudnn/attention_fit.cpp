#include "kernels/cuda/host/cudnn/attention_fit.h"

#include <cstdio>

#include "kernels/cuda/host/cudnn/status.h"

namespace yoke::cuda {

namespace {

struct Told {
    CudnnReason reason;
    const char *why, *remedy;
};

Told told(AttentionFit fit)
{
    switch (fit) {
        case AttentionFit::kWidths:
            return {CudnnReason::kWidths, "cuDNN needs widths in multiples of 8",
                    "fill the rows up with zeros"};
        case AttentionFit::kLayout:
            return {
                CudnnReason::kLayout,
                "cuDNN needs rows and heads at multiples of 16 bytes, and at most two axes of heads",
                "make query, key and value contiguous()"};
        default:
            return {
                CudnnReason::kKeyCount,
                "with a mask, cuDNN's gradient may be NaN on this card for a number of keys of 64 above a multiple of 128",
                "add keys that the mask forbids"};
    }
}

int index_of(const yoke_launch *launch)
{
    return static_cast<const Device *>(launch->device)->index;
}

}  // namespace

void tell_fit(const yoke_launch *launch, AttentionFit fit, const char *what)
{
    if (fit == AttentionFit::kFits || fit == AttentionFit::kForeign) return;
    const Told text = told(fit);
    char line[512];
    snprintf(line, sizeof line, "cuda:%d: Yoke's own kernels compute %s: %s; %s", index_of(launch),
             what, text.why, text.remedy);
    cudnn_warn(text.reason, line);
}

void tell_no_engine(const yoke_launch *launch, const char *what, const CudnnFailure &why)
{
    char line[1024];
    snprintf(
        line, sizeof line,
        "cuda:%d: Yoke's own kernels compute %s: cuDNN has no engine for it on this card%s%s; widths up to 128 have engines on cards from 8.0 on",
        index_of(launch), what, *why.said ? ": " : "", why.said);
    cudnn_warn(CudnnReason::kNoAttention, line);
}

void tell_limit(const yoke_launch *launch, const char *what, uint64_t bytes)
{
    char line[512];
    snprintf(
        line, sizeof line,
        "cuda:%d: Yoke's own kernels compute %s: cuDNN needs a workspace of %llu bytes for it, and the limit is %llu; set yoke.backends.cudnn.workspace_limit to %llu",
        index_of(launch), what, static_cast<unsigned long long>(bytes),
        static_cast<unsigned long long>(launch->workspace_limit),
        static_cast<unsigned long long>(bytes));
    cudnn_warn(CudnnReason::kLimit, line);
}

}  // namespace yoke::cuda
