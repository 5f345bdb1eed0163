#include "kernels/cuda/host/slow_attention.h"

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "kernels/common/attention_call.h"

namespace yoke::cuda {

// Returns the first of the reasons, with its remedy. cuDNN alone serves widths above 128, in multiples of 8 and without
// dropout.
static const char *why_slow(const yoke_launch *launch, int64_t width, int64_t value_width)
{
    const bool are_eights = width % 8 == 0 && value_width % 8 == 0,
               are_wide = std::max(width, value_width) > 128;
    if (compiled_for(launch) < 80) return "attention uses them on cards from 8.0 on";
    if (launch->flags & YOKE_LAUNCH_CUDNN_OFF && are_eights && are_wide &&
        kernels::AttentionParams(launch->params).dropout == 0)
        return "cuDNN is off; set yoke.backends.cudnn.enabled to true";
    if (!are_eights || are_wide)
        return "the widths must be multiples of 8 and at most 128; fill the rows up with zeros";
    return "rows must lie at multiples of 16 bytes, and an additive mask must have the dtype of the query; make query, key and value contiguous()";
}

void tell_slow_attention(const yoke_launch *launch, yoke_dtype dtype, int64_t width,
                         int64_t value_width)
{
    static std::atomic<bool> told{false};
    if (dtype != YOKE_F16 && dtype != YOKE_BF16) return;
    if (told.load(std::memory_order_relaxed) || told.exchange(true)) return;
    char line[320];
    snprintf(line, sizeof line,
             "cuda:%d: attention of 16-bit floats runs without tensor cores, many times slower: %s",
             static_cast<const Device *>(launch->device)->index,
             why_slow(launch, width, value_width));
    g_host->log(YOKE_LOG_WARN, line);
}

}  // namespace yoke::cuda
