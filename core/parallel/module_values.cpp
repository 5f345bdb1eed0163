#include "core/parallel/module_values.h"

#include "core/base/log.h"
#include "core/comm/exchange.h"
#include "core/comm/pieces.h"
#include "core/ops/ops.h"
#include "core/parallel/compression.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

namespace yoke {

namespace {

// Returns whether the tensors are equal bit by bit.
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

// Returns a tensor with the elements of these tensors one after the other, in new memory.
Tensor together(const std::vector<Tensor> &some)
{
    if (some.size() == 1) return ops::clone(*flat(some[0]));
    std::vector<Tensor> parts;
    std::vector<yoke_tensor *> list;
    for (const Tensor &each : some) list.push_back(parts.emplace_back(flat(each)).get());
    return ops::cat(list);
}

void send_together(Group &group, const std::vector<Tensor> &some, int32_t root, Writes writes)
{
    const bool is_in_place = writes == Writes::kAll && some.size() == 1;
    const Tensor all = is_in_place ? some[0] : together(some);
    Collective call{YOKE_COMM_BROADCAST, -1, root, all, all};
    call.may_be_staged = true;  // a module may be on several devices
    group.run(std::move(call), false);
    if (is_in_place || group.rank() == root) return;
    int64_t offset = 0;
    for (const Tensor &each : some) {
        const Tensor told = make_view(*all, each->shape(), nullptr, offset);
        if (writes == Writes::kAll || !are_equal(*each, *told)) ops::copy_(*each, *told);
        offset += each->numel;
    }
}

int64_t hash_of_values(const std::vector<ModuleTensor> &tensors)
{
    int64_t hash = 0;
    const std::hash<std::string_view> hash_of;
    for (const ModuleTensor &each : tensors)
        for (const Tensor &piece : pieces_of(*each.tensor))
            hash = static_cast<int64_t>(
                hash_of(bytes_of(*piece, kDdpCall).append(std::to_string(hash))));
    return hash;
}

}  // namespace

// Sends small tensors with the same dtype and device together: a message costs more than copies of the tensors.
void send_values(Group &group, const std::vector<ModuleTensor> &tensors, int32_t root,
                 Writes writes)
{
    constexpr uint64_t kSmall = 1 << 15;  // bytes
    std::vector<std::vector<Tensor>> together;
    for (const ModuleTensor &each : tensors) {
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
    for (const std::vector<Tensor> &each : together) send_together(group, each, root, writes);
}

void send_module(Group &group, const WrappedModule &module, int32_t root)
{
    send_values(group, module.all_params(), root, Writes::kAll);
    send_values(group, module.buffers(), root, Writes::kUnlike);
}

void take_values_of_rank_0(Group &group, const WrappedModule &module)
{
    constexpr size_t kEach = 2;  // numbers of a rank
    const std::vector<int64_t> hashes = gathered(
        group, {hash_of_values(module.all_params()), hash_of_values(module.buffers())}, kDdpCall);
    if (std::equal(hashes.begin() + kEach, hashes.end(), hashes.begin())) return;
    send_module(group, module, 0);
    if (group.rank() == 0)
        log(LogLevel::kWarn,
            "%s: the ranks began with different values; all ranks took the values of %s", kDdpCall,
            describe(group.ranks()[0]).c_str());
}

}  // namespace yoke
