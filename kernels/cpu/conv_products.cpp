// Gradient of a convolution by weight as a product of matrices: the result's gradient, [out, positions], times the
// windows, [positions, taps and channels].
//
// oneDNN's kernel for bf16 sums along rows of the result, with 32 pixels in an AMX tile. For short rows most of a
// tile is zeros, and windows that do not follow each other are gathered anew for each row. Measured with 32 images,
// relative to the product and the copy of windows: rows of 14 with a stride take 1.3 times as long, rows of 7 three
// times, rows of 4 six times, and windows of 1 x 1 two to ten times. Without AMX both ways take equal time.
#include "kernels/cpu/conv_products.h"

#include <algorithm>

#include "kernels/cpu/conv_windows.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/onednn_parts.h"

namespace yoke::cpu {

constexpr int64_t kShortRow = 8, kShortStridedRow = 16;
// Limits on the copy of windows: a multiple of x, the result's gradient and the weight, and bytes that are always
// allowed.
constexpr int64_t kMostCopies = 5, kFewBytes = 1 << 24;

static bool is_small(const Conv &c)
{
    const int64_t grad = c.n * c.oh * c.ow * c.o,
                  most = kFewBytes / kHalfBytes +
                         kMostCopies * (c.n * c.c * c.h * c.w + grad + c.o * terms_of(c));
    int64_t windows;
    return !__builtin_mul_overflow(c.n * c.oh * c.ow, terms_of(c), &windows) && windows <= most;
}

bool can_be_product(const Conv &c)
{
    if (c.kind != ConvKind::kWeight || c.dtype != YOKE_BF16 || c.groups != 1) return false;
    if (std::min({c.n, c.c, c.o, c.oh, c.ow}) < 1) return false;
    return is_plain(c) || is_small(c);
}

bool is_product(const Conv &c)
{
    const bool is_strided = std::max(c.stride[0], c.stride[1]) > 1;
    const bool is_short = c.ow <= (is_strided ? kShortStridedRow : kShortRow);
    return (taps_of(c) == 1 || is_short) && can_be_product(c);
}

yoke_status conv_product(const yoke_launch *launch, const Conv &c, bool *done)
{
    const int64_t terms = terms_of(c), positions = c.n * c.oh * c.ow;
    const uint64_t window_bytes = is_plain(c) ? 0 : (uint64_t)(positions * terms * kHalfBytes),
                   sum_bytes = taps_of(c) == 1 ? 0 : (uint64_t)(c.o * terms * kHalfBytes);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve(window_bytes + sum_bytes)) return status;
    char *windows = window_bytes ? scratch.as<char>() : static_cast<char *>(c.x);
    void *sums = sum_bytes ? scratch.as<char>() + window_bytes : c.weight;
    if (window_bytes) copy_windows(c, 0, 0, positions, windows);
    const Product product{YOKE_BF16,
                          1,
                          c.o,
                          terms,
                          positions,
                          {c.out, 0, 1, c.o},
                          {windows, 0, terms, 1},
                          {sums, 0, terms, 1},
                          nullptr};
    if (yoke_status status = gemm_onednn(launch, product, done)) return status;
    if (*done && sum_bytes) take_weight(c, sums);
    return YOKE_OK;
}

}  // namespace yoke::cpu
