// Backward passes from several threads at once: over a common graph, over losses with a shared trunk, into shared
// leaves.
#include "core/autograd/backward.h"
#include "core/base/read_gate.h"
#include "core/ops/ops.h"
#include "tests/core/expect_error.h"

#include <barrier>
#include <thread>
#include <vector>

namespace yoke {
namespace {

Tensor leaf(double value)
{
    Tensor x = ops::full(Dims{64}, value, YOKE_F64);
    set_requires_grad(*x, true);
    return x;
}

double first_of(const Tensor &x)
{
    double values[64];
    copy_to_host(*x, values, sizeof values, "a test");
    return values[0];
}

// Returns a product of powers of x: each node saves its operands.
Tensor chain(const yoke_tensor &x, int length)
{
    Tensor y = ops::mul(x, x);
    for (int i = 1; i < length; ++i) y = ops::mul(y, x);
    return y;
}

void walk(const Tensor &root, bool retain)
{
    yoke_tensor *roots[] = {root.get()};
    backward(roots, {}, retain);
}

// Walks from each root in a separate thread; all threads begin at once. Returns the statuses: OK, or the StateError
// of a freed graph.
std::vector<yoke_status> walk_at_once(const std::vector<Tensor> &roots, bool retain)
{
    std::vector<yoke_status> met(roots.size(), YOKE_OK);
    std::barrier start(static_cast<std::ptrdiff_t>(roots.size()));
    std::vector<std::thread> threads;
    for (size_t t = 0; t < roots.size(); ++t)
        threads.emplace_back([&, t] {
            start.arrive_and_wait();
            try {
                walk(roots[t], retain);
            } catch (const Error &error) {
                met[t] = error.status();
            }
        });
    for (std::thread &thread : threads) thread.join();
    return met;
}

TEST(AutogradThreads, WalksThatRetainTheGraphAllAddWhatTheyFind)
{
    for (int round = 0; round < 30; ++round) {
        const Tensor x = leaf(1.0), loss = ops::sum(chain(*x, 20));
        const auto met = walk_at_once({loss, loss, loss}, true);
        EXPECT_EQ(met, (std::vector<yoke_status>{YOKE_OK, YOKE_OK, YOKE_OK}));
        EXPECT_EQ(first_of(grad_of(*x, "a test")), 3 * 21);
    }
}

TEST(AutogradThreads, WalksThatFreeOneGraphEitherWorkOrSayThatItWasFreed)
{
    for (int round = 0; round < 300; ++round) {
        const Tensor x = leaf(1.0), loss = ops::sum(chain(*x, 20));
        for (const yoke_status status : walk_at_once({loss, loss, loss}, false))
            EXPECT_TRUE(status == YOKE_OK || status == YOKE_E_STATE) << status;
        test::expect_error(YOKE_E_STATE, {"was freed by an earlier backward"},
                           [&] { walk(loss, false); });
    }
}

TEST(AutogradThreads, LossesWithASharedTrunkDoTheSame)
{
    for (int round = 0; round < 300; ++round) {
        const Tensor x = leaf(1.0), a = leaf(2.0), b = leaf(3.0), trunk = chain(*x, 12);
        const auto met = walk_at_once({ops::sum(ops::mul(trunk, a)), ops::sum(ops::mul(trunk, b))},
                                      round % 2 == 0);
        // A walk that fails at the trunk may already have added to the leaf in front of the trunk. Then x gets
        // nothing from this walk.
        if (met[0] == YOKE_OK) {
            EXPECT_EQ(first_of(grad_of(*a, "a test")), 1.0);
        }
        if (met[1] == YOKE_OK) {
            EXPECT_EQ(first_of(grad_of(*b, "a test")), 1.0);
        }
        if (met[0] == YOKE_OK && met[1] == YOKE_OK) {
            EXPECT_EQ(first_of(grad_of(*x, "a test")), (2 + 3) * 13);
        }
    }
}

TEST(AutogradThreads, AGateIsEmptiedByTheLastToLeave)
{
    ReadGate gate;
    EXPECT_TRUE(gate.enter());
    EXPECT_TRUE(gate.enter());
    EXPECT_FALSE(gate.leave());
    EXPECT_FALSE(gate.close());  // a walk is inside
    EXPECT_FALSE(gate.enter());
    EXPECT_FALSE(gate.close());
    EXPECT_FALSE(gate.leave());  // by the refused walk
    EXPECT_TRUE(gate.leave());
    EXPECT_FALSE(gate.enter());
    EXPECT_FALSE(gate.leave());  // the gate is empty already

    ReadGate empty;
    EXPECT_TRUE(empty.close());
    EXPECT_FALSE(empty.close());
}

}  // namespace
}  // namespace yoke
