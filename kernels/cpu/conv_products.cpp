// The gradient of a convolution by weight as a product of matrices: the result's gradient, [out, positions], times what
// windows hold, [positions, taps and channels].
//
// oneDNN's kernel for bf16 sums along rows of the result, 32 pixels to a tile of AMX: of rows that are short most of a
// tile is zeros, and windows that do not follow one another are gathered anew for each. Measured with 32 images: rows
// of 14 with a stride take 1.3 times as long as the product and the copy of its windows, of 7 three times, of 4 six
// times, and those of 1 x 1 two to ten times. Without AMX both take as long.
#include "kernels/cpu/conv_products.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/onednn_parts.h"

namespace yoke::cpu {

constexpr int64_t kShortRow = 8, kShortStridedRow = 16;
constexpr int64_t kSize = 2;  // bytes of an element
// Of windows, beside those of x, the result's gradient and the weight: what a copy of them may take, whatever they are.
constexpr int64_t kMostCopies = 5, kFewBytes = 1 << 24;

static int64_t taps_of(const Conv &c)
{
    return c.kh * c.kw;
}

// Windows are then the pixels of x as they lie.
static bool is_plain(const Conv &c)
{
    return taps_of(c) == 1 && c.stride[0] == 1 && c.stride[1] == 1 && c.padding[0] == 0 &&
           c.padding[1] == 0;
}

static int64_t terms_of(const Conv &c)
{
    return taps_of(c) * c.c;
}

static bool is_small(const Conv &c)
{
    const int64_t grad = c.n * c.oh * c.ow * c.o,
                  most = kFewBytes / kSize +
                         kMostCopies * (c.n * c.c * c.h * c.w + grad + c.o * terms_of(c));
    int64_t windows;
    return !__builtin_mul_overflow(c.n * c.oh * c.ow, terms_of(c), &windows) && windows <= most;
}

bool is_product(const Conv &c)
{
    if (c.kind != ConvKind::kWeight || c.dtype != YOKE_BF16 || c.groups != 1) return false;
    if (std::min({c.n, c.c, c.o, c.oh, c.ow}) < 1) return false;
    const bool is_strided = std::max(c.stride[0], c.stride[1]) > 1;
    const bool is_short = c.ow <= (is_strided ? kShortStridedRow : kShortRow);
    return is_plain(c) || ((taps_of(c) == 1 || is_short) && is_small(c));
}

// ---- windows --------------------------------------------------------------------------------------------------------

// One row of a window's pixels, zeros where that is padding.
static char *copy_taps(const Conv &c, const char *row, int64_t x, char *to)
{
    const int64_t bytes = c.c * kSize;
    if (row && c.dilation[1] == 1 && x >= 0 && x + c.kw <= c.w)
        return static_cast<char *>(memcpy(to, row + x * bytes, (size_t)(c.kw * bytes))) +
               c.kw * bytes;
    for (int64_t tap = 0; tap < c.kw; tap++, to += bytes) {
        const int64_t at = x + tap * c.dilation[1];
        if (row && at >= 0 && at < c.w)
            memcpy(to, row + at * bytes, (size_t)bytes);
        else
            memset(to, 0, (size_t)bytes);
    }
    return to;
}

// The windows of a row of the result, of all images in turn.
static void copy_windows(const Conv &c, int64_t number, char *windows)
{
    const int64_t image = number / c.oh, first = number % c.oh * c.stride[0] - c.padding[0];
    const char *x = static_cast<const char *>(c.x);
    char *to = windows + number * c.ow * taps_of(c) * c.c * kSize;
    for (int64_t j = 0; j < c.ow; j++)
        for (int64_t tap = 0; tap < c.kh; tap++) {
            const int64_t y = first + tap * c.dilation[0];
            const char *row =
                y < 0 || y >= c.h ? nullptr : x + (image * c.h + y) * c.w * c.c * kSize;
            to = copy_taps(c, row, j * c.stride[1] - c.padding[1], to);
        }
}

// ---- the weight -----------------------------------------------------------------------------------------------------

// An output channel's numbers, from taps by channels to channels by taps.
static void turn(const Conv &c, int64_t channel, const uint16_t *from)
{
    const int64_t taps = taps_of(c);
    from += channel * taps * c.c;
    uint16_t *to = static_cast<uint16_t *>(c.weight) + channel * taps * c.c;
    for (int64_t i = 0; i < c.c; i++)
        for (int64_t tap = 0; tap < taps; tap++) *to++ = from[tap * c.c + i];
}

yoke_status conv_product(const yoke_launch *launch, const Conv &c, bool *done)
{
    const int64_t terms = terms_of(c), positions = c.n * c.oh * c.ow;
    const uint64_t window_bytes = is_plain(c) ? 0 : (uint64_t)(positions * terms * kSize),
                   sum_bytes = taps_of(c) == 1 ? 0 : (uint64_t)(c.o * terms * kSize);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve(window_bytes + sum_bytes)) return status;
    char *windows = window_bytes ? scratch.as<char>() : static_cast<char *>(c.x);
    void *sums = sum_bytes ? scratch.as<char>() + window_bytes : c.weight;
    if (window_bytes)
        run_parts(c.n * c.oh, INT32_MAX, [&](int64_t row, int) { copy_windows(c, row, windows); });
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
    if (*done && sum_bytes)
        run_parts(c.o, INT32_MAX, [&](int64_t channel, int) {
            turn(c, channel, static_cast<const uint16_t *>(sums));
        });
    return YOKE_OK;
}

}  // namespace yoke::cpu
