// special_checkpoint.cpp: scopes whose activations are made again, opened and put in force by hand.
#include "special.h"

#include <iterator>

namespace hostile::special {

void yoke_checkpoint_begin(Draw &d)
{
    static const char *const policies[] = {nullptr, "full", "matmul", "ops", "fool", "", "budget"};
    static const char *const ops[] = {"gelu", "matmul", "add", "linear", "sofmax", nullptr};
    yoke_checkpoint_options options{};
    options.struct_size = sizeof options;
    options.policy = policies[d.below(std::size(policies))];
    const uint64_t first = d.below(std::size(ops) + 1);
    options.ops = first < std::size(ops) ? ops + first : nullptr;
    options.op_count = static_cast<int64_t>(d.below(2));
    options.budget = d.handle<yoke_memory_budget>();
    options.offload = static_cast<int32_t>(d.below(3));
    const bool none = d.below(4) == 0;
    const int place = d.any_place<yoke_checkpoint>();
    yoke_checkpoint *scope = nullptr;
    d.announce();
    const yoke_status status = ::yoke_checkpoint_begin(none ? nullptr : &options, &scope);
    d.finish(status);
    if (status != YOKE_OK && scope) throw Defect("failed and left a scope");
    d.world().put(place, scope);
}

void yoke_checkpoint_swap(Draw &d)
{
    yoke_checkpoint *scope = d.handle<yoke_checkpoint>();
    d.announce();
    (void)::yoke_checkpoint_swap(scope);  // borrowed: held by a place, or gone
}

}  // namespace hostile::special
