#include "core/ops/cast_memory.h"

#include "core/autograd/node.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace yoke {

bool is_weight(const yoke_tensor &x)
{
    return x.dtype == YOKE_F32 && !x.is_view && x.requires_grad() && is_leaf(x) &&
           x.storage.present();
}

uint64_t leaf_number(const yoke_tensor &weight)
{
    return node_of(weight)->sequence;
}

// Made while the library is loaded, so that a fork never finds it half made; never destroyed.
static CastMemory *const memory = new CastMemory;

CastMemory &CastMemory::of_process()
{
    return *memory;
}

bool CastMemory::List::contains(uint64_t leaf) const
{
    const auto found = std::ranges::lower_bound(weights, leaf, {}, &PastWeight::leaf);
    return found != weights.end() && found->leaf == leaf;
}

void CastMemory::remember(std::vector<PastWeight> weights)
{
    if (weights.empty()) return;
    std::ranges::sort(weights, {}, &PastWeight::leaf);
    List list{&thread_state(), std::move(weights)};
    const std::lock_guard lock(mutex_);
    List *place = nullptr;
    for (List &each : lists_) {
        const bool is_earlier =
            each.thread == list.thread &&
            std::ranges::any_of(
                each.weights, [&](uint64_t leaf) { return list.contains(leaf); },
                &PastWeight::leaf);
        if (is_earlier) each.weights.clear();
        if (!place && each.weights.empty()) place = &each;
    }
    if (!place) place = &lists_[oldest_++ % kLists];
    std::swap(*place, list);
}

std::vector<PastWeight> CastMemory::beside(const yoke_tensor &x)
{
    const ThreadState *thread = &thread_state();
    const uint64_t leaf = leaf_number(x);
    const std::lock_guard lock(mutex_);
    for (const List &each : lists_)
        if (each.thread == thread && each.contains(leaf)) return each.weights;
    return {};
}

}  // namespace yoke
