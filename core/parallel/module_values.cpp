// Values of parameters and buffers that go from one rank to the others.
#include "core/comm/pieces.h"
#include "core/ops/ops.h"
#include "core/parallel/reducer.h"

#include <algorithm>

namespace yoke {

namespace {

// To the bit.
bool are_equal(const yoke_tensor &x, const yoke_tensor &y)
{
    return std::ranges::equal(pieces_of(x), pieces_of(y), [](const Tensor &a, const Tensor &b) {
        return bytes_of(*a, kDdpCall) == bytes_of(*b, kDdpCall);
    });
}

Tensor flat(const Tensor &x)
{
    const int64_t shape[] = {x->numel};
    return make_view(*ops::contiguous(*x), shape, nullptr, 0);
}

// In memory of its own.
Tensor together(const std::vector<Tensor> &some)
{
    if (some.size() == 1) return ops::clone(*flat(some[0]));
    std::vector<Tensor> parts;
    std::vector<yoke_tensor *> list;
    for (const Tensor &each : some) list.push_back(parts.emplace_back(flat(each)).get());
    return ops::cat(list);
}

}  // namespace

// Small ones of a dtype and device pass together: a message costs more than copies of theirs.
void Reducer::send(const std::vector<Named> &tensors, int32_t root, Writes writes)
{
    constexpr uint64_t kSmall = 1 << 15;  // bytes
    std::vector<std::vector<Tensor>> together;
    for (const Named &each : tensors) {
        const Tensor &one = each.tensor;
        const auto fits = [&](const std::vector<Tensor> &others) {
            return one->nbytes() <= kSmall && others[0]->nbytes() <= kSmall &&
                   others[0]->dtype == one->dtype && others[0]->device == one->device;
        };
        const auto found = std::ranges::find_if(together, fits);
        if (found == together.end())
            together.push_back({one});
        else
            found->push_back(one);
    }
    for (const std::vector<Tensor> &each : together) send_together(each, root, writes);
}

// A graph may have saved a buffer, and goes back while that is what it was: so where only unlike ones are written, the
// root writes nothing.
void Reducer::send_together(const std::vector<Tensor> &some, int32_t root, Writes writes)
{
    const bool is_in_place = writes == Writes::kAll && some.size() == 1;
    const Tensor all = is_in_place ? some[0] : together(some);
    group_->run({YOKE_COMM_BROADCAST, -1, root, all, all}, false);
    if (is_in_place || group_->rank() == root) return;
    int64_t offset = 0;
    for (const Tensor &each : some) {
        const Tensor told = make_view(*all, each->shape(), nullptr, offset);
        if (writes == Writes::kAll || !are_equal(*each, *told)) ops::copy_(*each, *told);
        offset += each->numel;
    }
}

}  // namespace yoke
