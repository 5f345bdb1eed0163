// lists.cpp: ops whose results are a list.
#include "core/ops/recompute/scope.h"
#include "core/ops/run.h"

namespace yoke {

int64_t count_list(int32_t number, yoke_arg *args)
{
    const OpDef &op = kOps[number];
    const int64_t count = op.count_list(args);
    if (count > kMaxListed)
        fail(YOKE_E_VALUE, "%s: there would be %lld results; a list has at most %lld", op.name,
             static_cast<long long>(count), static_cast<long long>(kMaxListed));
    return count;
}

std::vector<Tensor> run_list(int32_t number, yoke_arg *args)
{
    count_list(number, args);
    const Composing part_of(kOps[number]);
    return kOps[number].compose_list(args);
}

}  // namespace yoke
