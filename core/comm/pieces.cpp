#include "core/comm/pieces.h"

#include "core/ops/ops.h"

#include <algorithm>

namespace yoke {

namespace {

// Returns the view x[from : from + count] along the first axis; with count 0, the view x[from] without this axis.
Tensor part_of(const yoke_tensor &x, int64_t from, int64_t count)
{
    std::vector<int64_t> shape(x.shape().begin(), x.shape().end());
    shape[0] = count;
    const size_t first = count ? 0 : 1;
    return make_view(x, IntList(shape).subspan(first), x.strides().subspan(first).data(),
                     from * x.strides()[0]);
}

void cut_up(const Tensor &x, std::vector<Tensor> &pieces)
{
    constexpr uint64_t kMost = 1 << 20;
    if (x->nbytes() <= kMost) return pieces.push_back(x);
    const int64_t rows = x->shape()[0];
    const auto fit = static_cast<int64_t>(kMost / (x->nbytes() / static_cast<uint64_t>(rows)));
    for (int64_t i = 0; i < rows; i += std::max<int64_t>(fit, 1))
        cut_up(part_of(*x, i, std::min(fit, rows - i)), pieces);
}

}  // namespace

std::vector<Tensor> pieces_of(const yoke_tensor &x)
{
    std::vector<Tensor> pieces;
    cut_up(alias(x), pieces);
    return pieces;
}

std::string bytes_of(const yoke_tensor &piece, const char *call)
{
    const Tensor dense = ops::contiguous(piece);
    std::string bytes(dense->nbytes(), '\0');
    copy_to_host(*dense, bytes.data(), bytes.size(), call);
    return bytes;
}

}  // namespace yoke
