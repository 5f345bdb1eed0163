// The result of a convolution as a product of matrices: its windows times the turned weight. For those that oneDNN's
// own kernels cannot be trusted with (conv_parts.cpp).
#include <algorithm>

#include "kernels/cpu/conv_products.h"
#include "kernels/cpu/conv_windows.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/onednn_parts.h"

namespace yoke::cpu {

// Bytes of windows at a time: so many that a product with 64 channels still has parts for some threads.
constexpr int64_t kPiece = 32 << 20;

yoke_status conv_forward(const yoke_launch *launch, const Conv &c, bool *done)
{
    const int64_t terms = terms_of(c), positions = c.n * c.oh * c.ow,
                  piece = std::min(positions,
                                   std::max<int64_t>(64, kPiece / (terms * kHalfBytes) / 64 * 64));
    const uint64_t weight_bytes = aligned((uint64_t)(c.o * terms * kHalfBytes));
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve(weight_bytes + (uint64_t)(piece * terms * kHalfBytes)))
        return status;
    char *windows = scratch.as<char>() + weight_bytes;
    give_weight(c, scratch.data());
    for (int64_t first = 0; first < positions; first += piece) {
        const int64_t some = std::min(piece, positions - first);
        copy_windows(c, first, some, windows);
        const Product product{YOKE_BF16,
                              1,
                              some,
                              c.o,
                              terms,
                              {windows, 0, terms, 1},
                              {scratch.data(), 0, 1, terms},
                              {static_cast<char *>(c.out) + first * c.o * kHalfBytes, 0, c.o, 1},
                              c.bias};
        if (yoke_status status = gemm_onednn(launch, product, done)) return status;
        if (!*done) return YOKE_OK;  // and neither are the rest
    }
    return YOKE_OK;
}

}  // namespace yoke::cpu
