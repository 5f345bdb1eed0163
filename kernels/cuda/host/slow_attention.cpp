#include "kernels/cuda/host/slow_attention.h"

#include <atomic>
#include <cstdio>

namespace yoke::cuda {

// Returns the first of the reasons, with its remedy.
static const char *why_slow(const yoke_launch *launch, int64_t width, int64_t value_width)
{
    const auto is_fine = [](int64_t one) { return one % 8 == 0 && one <= 128; };
    if (launch->flags & YOKE_LAUNCH_CUDNN_OFF)
        return "cuDNN is off; set yoke.backends.cudnn.enabled to true";
    if (compiled_for(launch) < 80) return "attention uses them on cards from 8.0 on";
    if (!is_fine(width) || !is_fine(value_width))
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
