#include "kernels/cpu/conv_windows.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/onednn_parts.h"

namespace yoke::cpu {

// Copies one row of a window's pixels of a group from `row`, and returns the end of the copy. Padding gives zeros;
// null stands for a row of padding.
static char *copy_taps(const Conv &c, const char *row, int64_t x, char *to)
{
    const int64_t bytes = c.c / c.groups * kHalfBytes, step = c.c * kHalfBytes;
    if (row && c.dilation[1] == 1 && c.groups == 1 && x >= 0 && x + c.kw <= c.w)
        return static_cast<char *>(memcpy(to, row + x * step, (size_t)(c.kw * step))) + c.kw * step;
    for (int64_t tap = 0; tap < c.kw; tap++, to += bytes) {
        const int64_t at = x + tap * c.dilation[1];
        if (row && at >= 0 && at < c.w)
            memcpy(to, row + at * step, (size_t)bytes);
        else
            memset(to, 0, (size_t)bytes);
    }
    return to;
}

static void copy_window(const Conv &c, int64_t group, int64_t position, char *to)
{
    const int64_t row = position / c.ow, image = row / c.oh;
    const int64_t first = row % c.oh * c.stride[0] - c.padding[0],
                  left = position % c.ow * c.stride[1] - c.padding[1];
    const char *x = static_cast<const char *>(c.x) + group * (c.c / c.groups) * kHalfBytes;
    for (int64_t tap = 0; tap < c.kh; tap++) {
        const int64_t y = first + tap * c.dilation[0];
        const char *pixels =
            y < 0 || y >= c.h ? nullptr : x + (image * c.h + y) * c.w * c.c * kHalfBytes;
        to = copy_taps(c, pixels, left, to);
    }
}

void copy_windows(const Conv &c, int64_t group, int64_t first, int64_t count, char *windows)
{
    constexpr int64_t kShare = 1 << 16;  // bytes that are worth a part
    const int64_t bytes = terms_of(c) * kHalfBytes, share = std::max<int64_t>(1, kShare / bytes);
    run_parts((count + share - 1) / share, INT32_MAX, [&](int64_t part, int) {
        for (int64_t i = part * share; i < std::min(count, (part + 1) * share); i++)
            copy_window(c, group, first + i, windows + i * bytes);
    });
}

// Calls copy(place in the weight, place in the turned weight) for each element of the weight, by the team.
template <class Copy>
static void each_of_weight(const Conv &c, const Copy &copy)
{
    const int64_t taps = taps_of(c), channels = c.c / c.groups;
    run_parts(c.o, INT32_MAX, [&](int64_t channel, int) {
        const int64_t first = channel * taps * channels;
        for (int64_t i = 0; i < channels; i++)
            for (int64_t tap = 0; tap < taps; tap++)
                copy(first + i * taps + tap, first + tap * channels + i);
    });
}

void take_weight(const Conv &c, const void *turned)
{
    uint16_t *to = static_cast<uint16_t *>(c.weight);
    const uint16_t *from = static_cast<const uint16_t *>(turned);
    each_of_weight(c, [&](int64_t place, int64_t other) { to[place] = from[other]; });
}

void give_weight(const Conv &c, void *turned)
{
    uint16_t *to = static_cast<uint16_t *>(turned);
    const uint16_t *from = static_cast<const uint16_t *>(c.weight);
    each_of_weight(c, [&](int64_t place, int64_t other) { to[other] = from[place]; });
}

}  // namespace yoke::cpu
