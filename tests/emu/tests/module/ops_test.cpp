// The module has a kernel for every op that can have one.
#include <string>

#include "core/backend/ops.inc"
#include "module.h"

namespace yoke::test {

TEST(Ops, HasAKernelForEveryOpThatIsNotMadeOfOthers)
{
    const Module module;
    ASSERT_EQ(module->kernel_count, YOKE_OP_COUNT);
    // An op that is a view, is composed of others or works in place has no kernel of its own.
    static constexpr const char *kWithKernel[] = {
#define YOKE_NAMED(op) #op,
#define YOKE_UNNAMED(op) nullptr,
        YOKE_FOR_EACH_OP(YOKE_NAMED, YOKE_UNNAMED)
#undef YOKE_NAMED
#undef YOKE_UNNAMED
    };
    std::string missing;
    for (int op = 0; op < YOKE_OP_COUNT; ++op)
        if (kWithKernel[op] && !module->kernels[op]) missing += std::string(" ") + kWithKernel[op];
    EXPECT_EQ(missing, "") << "ops that kernels/cuda lacks";
}

}  // namespace yoke::test
