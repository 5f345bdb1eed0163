#include "core/parallel/buckets.h"

#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/ops/ops.h"

#include <algorithm>
#include <utility>

namespace yoke {

namespace {

constexpr int64_t kLine = 64;  // bytes

int64_t padded_count(const yoke_tensor &x)
{
    const int64_t a_line = kLine / static_cast<int64_t>(item_size(x.dtype));
    return (x.numel + a_line - 1) / a_line * a_line;
}

struct Open {
    const Device *device;
    yoke_dtype dtype;
    uint64_t limit;
    uint64_t bytes = 0;
    std::vector<size_t> params = {};
};

Open &open_bucket_of(std::vector<Open> &all, const yoke_tensor &param, uint64_t limit)
{
    const auto found = std::ranges::find_if(all, [&](const Open &each) {
        return each.device == param.device && each.dtype == param.dtype;
    });
    if (found != all.end()) return *found;
    all.push_back({param.device, param.dtype, limit});
    return all.back();
}

}  // namespace

BucketSizes bucket_sizes(double mib)
{
    constexpr double kMiB = 1 << 20, kMost = 1e6;
    if (!(mib > 0 && mib <= kMost))
        fail(
            YOKE_E_VALUE,
            "DistributedDataParallel: argument 'bucket_mb' is %g; it must be the MiB of a bucket, above 0 and up to %g",
            mib, kMost);
    BucketSizes sizes;
    sizes.other = static_cast<uint64_t>(mib * kMiB);
    sizes.first = std::min(sizes.first, sizes.other);
    return sizes;
}

BucketPlan plan_buckets(const std::vector<Tensor> &params, const std::vector<size_t> &order,
                        BucketSizes sizes)
{
    BucketPlan plan;
    std::vector<Open> open;
    for (const size_t each : order) {
        Open &bucket = open_bucket_of(open, *params[each], sizes.first);
        bucket.params.push_back(each);
        bucket.bytes += params[each]->nbytes();
        if (bucket.bytes < bucket.limit) continue;
        plan.push_back(std::exchange(bucket.params, {}));
        bucket.bytes = 0;
        bucket.limit = sizes.other;
    }
    for (Open &each : open)
        if (!each.params.empty()) plan.push_back(std::move(each.params));
    // Gradients with equal shapes become neighbours, so a single op can process all of them.
    for (std::vector<size_t> &each : plan)
        std::ranges::stable_sort(each, [&](size_t a, size_t b) {
            return std::ranges::lexicographical_compare(params[a]->shape(), params[b]->shape());
        });
    return plan;
}

Bucket make_bucket(Group &group, const std::vector<Tensor> &params,
                   const std::vector<size_t> &which)
{
    const NoGrad no_grad;
    Bucket made;
    made.params = which;
    int64_t count = 0;
    for (const size_t each : which) count += padded_count(*params[each]);
    const int64_t shape[] = {count};
    const yoke_tensor &one = *params[which[0]];
    const bool has_peers = one.device->host || group.issuer().devices().may_serve(*one.device);
    made.memory = has_peers ? group.empty(shape, one.dtype, *one.device)
                            : make_tensor(*one.device, one.dtype, shape, "backward");
    ops::fill_(*made.memory, 0.0);
    int64_t offset = 0;
    for (const size_t each : which) {
        made.views.push_back(make_view(*made.memory, params[each]->shape(), nullptr, offset));
        offset += padded_count(*params[each]);
    }
    return made;
}

}  // namespace yoke
