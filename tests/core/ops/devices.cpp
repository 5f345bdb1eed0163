// Between devices values and gradients cross, whichever side asks; what is allowed reaches a device with each launch.
#include "core/ops/ops.h"

#include "core/autograd/backward.h"
#include "core/ops/graph.h"
#include "core/ops/tf32.h"
#include "core/select/select.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"
#include "tests/core/ops/values.h"

#include <vector>

namespace yoke {

using test::fake_device;
using test::values_of;

namespace {

Tensor pair_on(Device &device, double first, double second)
{
    const int64_t shape = 2;
    const double values[] = {first, second};
    Tensor x = make_tensor(device, YOKE_F64, {&shape, 1}, "a test");
    copy_from_host(*x, values, sizeof values, "a test");
    return x;
}

}  // namespace

TEST(OpDevices, AGradientGoesBackToTheDeviceItsTensorCameFrom)
{
    test::in_fresh_process([] {
        const Tensor x = pair_on(fake_device(), 3, 4), y = pair_on(open_device("cpu"), 0, 0);
        set_requires_grad(*x, true);
        ops::copy_(*y, *x);
        EXPECT_EQ(values_of(y), (std::vector<double>{3, 4}));
        ASSERT_TRUE(y->requires_grad()) << "the copy is part of the record";
        const Tensor loss = ops::sum(*ops::mul(*y, *y));
        yoke_tensor *root = loss.get();
        backward({&root, 1}, {}, false);
        const Tensor grad = grad_of(*x, "a test");
        ASSERT_TRUE(grad.present());
        EXPECT_EQ(grad->device, x->device);
        EXPECT_EQ(values_of(grad), (std::vector<double>{6, 8}));
    });
}

TEST(OpDevices, ACopyWithoutGradModeRecordsNothing)
{
    test::in_fresh_process([] {
        const Tensor x = pair_on(fake_device(), 3, 4), y = pair_on(open_device("cpu"), 0, 0);
        set_requires_grad(*x, true);
        const NoGrad no_grad;
        ops::copy_(*y, *x);
        EXPECT_EQ(values_of(y), (std::vector<double>{3, 4}));
        EXPECT_FALSE(y->requires_grad());
    });
}

TEST(OpDevices, AnyOtherOpRefusesTensorsOfTwoDevicesAndNamesBoth)
{
    test::in_fresh_process([] {
        const Tensor x = pair_on(fake_device(), 3, 4), y = pair_on(open_device("cpu"), 0, 0);
        test::expect_error(YOKE_E_VALUE, {"add", "fake:0", "cpu", "to()"},
                           [&] { ops::add(*y, *x); });
        test::expect_error(YOKE_E_VALUE, {"add_", "fake:0", "cpu"}, [&] { ops::add_(*y, *x); });
        EXPECT_EQ(values_of(y), (std::vector<double>{0, 0}));
    });
}

TEST(OpDevices, ALaunchSaysWhetherTf32IsAllowed)
{
    test::in_fresh_process([] {
        const Tensor x = pair_on(fake_device(), 3, 4);
        test::fake.launch_flags = YOKE_LAUNCH_TF32;
        ops::add(*x, *x);
        EXPECT_EQ(test::fake.launch_flags, 0u) << "not allowed at first";
        allow_tf32(true);
        ops::add(*x, *x);
        EXPECT_EQ(test::fake.launch_flags, YOKE_LAUNCH_TF32);
        allow_tf32(false);
        ops::add(*x, *x);
        EXPECT_EQ(test::fake.launch_flags, 0u);
    });
}

TEST(OpDevices, WhatTf32HoldsExactlyIsMultipliedInItUnasked)
{
    test::in_fresh_process([] {
        const Tensor x = pair_on(fake_device(), 3, 4);
        const auto flags = [&] {
            ops::add(*x, *x);
            return test::fake.launch_flags.load();
        };
        {
            const FitsTf32 outer(true);
            {
                const FitsTf32 inner(false);
                EXPECT_EQ(flags(), YOKE_LAUNCH_TF32) << "the outer one still holds";
            }
            EXPECT_EQ(flags(), YOKE_LAUNCH_TF32);
        }
        EXPECT_EQ(flags(), 0u);
    });
}

TEST(OpDevices, AGraphKeepsWhatWasAllowedAtItsCapture)
{
    test::in_fresh_process([] {
        Device &device = fake_device();
        const Tensor x = pair_on(device, 3, 4);
        const auto graph = Ref<Graph>::adopt(new Graph(device));
        allow_tf32(true);
        graph->begin();
        const Tensor y = ops::add(*x, *x);
        graph->end();
        allow_tf32(false);
        test::fake.launch_flags = 0;
        graph->replay();
        EXPECT_EQ(test::fake.launch_flags, YOKE_LAUNCH_TF32);
    });
}

TEST(OpDevices, TheEnvironmentSaysWhetherTf32IsAllowedAtFirst)
{
    test::in_fresh_process([] {
        setenv("YOKE_ALLOW_TF32", "1", 1);
        EXPECT_TRUE(allows_tf32());
        allow_tf32(false);
        EXPECT_FALSE(allows_tf32()) << "what the program says comes after it";
    });
    test::in_fresh_process([] {
        setenv("YOKE_ALLOW_TF32", "1", 1);
        allow_tf32(false);
        EXPECT_FALSE(allows_tf32());
    });
    test::in_fresh_process([] {
        setenv("YOKE_ALLOW_TF32", "yes", 1);
        test::expect_error(YOKE_E_VALUE, {"YOKE_ALLOW_TF32", "'yes'", "0 or 1"},
                           [] { allows_tf32(); });
    });
}

}  // namespace yoke
