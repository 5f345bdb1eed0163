// Forward convolution as a product of matrices, for each group: its windows times the turned weight. For convolutions
// where oneDNN's own kernels have bugs (conv_parts.cpp).
#include <algorithm>

#include "kernels/cpu/conv_products.h"
#include "kernels/cpu/conv_windows.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/onednn_parts.h"

namespace yoke::cpu {

// Bytes of windows at a time: so many that a product with 64 channels still has parts for some threads.
constexpr int64_t kPiece = 32 << 20;

// Positions and groups computed at a time. With a bias, a piece has a single group, because each group has its own
// bias.
struct WindowPiece {
    int64_t positions, groups;

    explicit WindowPiece(const Conv &c)
    {
        const int64_t row = terms_of(c) * kHalfBytes, all = c.n * c.oh * c.ow;
        positions = std::min(all, std::max<int64_t>(64, kPiece / row / 64 * 64));
        groups = c.bias ? 1 : std::clamp<int64_t>(kPiece / (row * positions), 1, c.groups);
    }
};

// Returns the product of some positions of some groups, whose windows have been copied.
static Product product_of(const Conv &c, int64_t group, int64_t groups, int64_t first, int64_t some,
                          void *windows, char *weight)
{
    const int64_t terms = terms_of(c), channels = c.o / c.groups, channel = group * channels;
    char *out = static_cast<char *>(c.out) + (first * c.o + channel) * kHalfBytes;
    const char *bias = static_cast<const char *>(c.bias);
    return {YOKE_BF16,
            groups,
            some,
            channels,
            terms,
            {windows, some * terms, terms, 1},
            {weight + channel * terms * kHalfBytes, channels * terms, 1, terms},
            {out, channels, c.o, 1},
            bias ? bias + channel * kHalfBytes : nullptr};
}

yoke_status conv_forward(const yoke_launch *launch, const Conv &c, bool *done)
{
    const WindowPiece piece(c);
    const int64_t row = terms_of(c) * kHalfBytes, positions = c.n * c.oh * c.ow;
    const uint64_t weight_bytes = aligned((uint64_t)(c.o * row));
    Scratch scratch(launch);
    if (yoke_status status =
            scratch.reserve(weight_bytes + (uint64_t)(piece.groups * piece.positions * row)))
        return status;
    char *weight = scratch.as<char>(), *windows = weight + weight_bytes;
    give_weight(c, weight);
    for (int64_t group = 0; group < c.groups; group += piece.groups)
        for (int64_t first = 0; first < positions; first += piece.positions) {
            const int64_t groups = std::min(piece.groups, c.groups - group),
                          some = std::min(piece.positions, positions - first);
            for (int64_t i = 0; i < groups; i++)
                copy_windows(c, group + i, first, some, windows + i * some * row);
            const Product product = product_of(c, group, groups, first, some, windows, weight);
            if (yoke_status status = gemm_onednn(launch, product, done)) return status;
            if (!*done) return YOKE_OK;  // the remaining products fail alike
        }
    return YOKE_OK;
}

}  // namespace yoke::cpu
