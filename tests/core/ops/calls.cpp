// Calls that scripts cannot make: lists with gradients for some, internal ops, absent and broken arguments, versions.
#include "core/ops/ops.h"

#include "core/autograd/backward.h"
#include "core/ops/plan.h"
#include "core/ops/run.h"
#include "tests/core/expect_error.h"
#include "tests/core/ops/values.h"

#include <vector>

namespace yoke {

using test::expect_error;
using test::values_of;

namespace {

Tensor vector_of(std::vector<double> values, bool requires_grad = false)
{
    const auto count = static_cast<int64_t>(values.size());
    Tensor x = ops::empty(IntList(&count, 1), YOKE_F64);
    copy_from_host(*x, values.data(), values.size() * sizeof(double), "a test");
    if (requires_grad) set_requires_grad(*x, true);
    return x;
}

void go_back(const Tensor &x)
{
    yoke_tensor *root = x.get();
    backward({&root, 1}, {}, false);
}

}  // namespace

TEST(OpCalls, OfALongListThoseThatAskGetAGradient)
{
    std::vector<Tensor> held;
    std::vector<yoke_tensor *> list;
    for (int i = 0; i < 100; ++i) {
        held.push_back(vector_of({1.0 * i, 2.0 * i}, i % 3 == 0));
        list.push_back(held.back().get());
    }
    const Tensor joined = ops::cat(TensorList(list.data(), list.size()), 0);
    ASSERT_EQ(joined->numel, 200);
    go_back(ops::sum(*ops::mul(*joined, *joined)));
    for (int i = 0; i < 100; ++i) {
        const Tensor grad = grad_of(*held[static_cast<size_t>(i)], "a test");
        ASSERT_EQ(grad.present(), i % 3 == 0) << i;
        if (grad.present()) {
            EXPECT_EQ(values_of(grad), (std::vector<double>{2.0 * i, 4.0 * i})) << i;
        }
    }
}

TEST(OpCalls, ATensorThatStandsTwiceInAListGetsBothGradients)
{
    const Tensor x = vector_of({1, 2}, true);
    yoke_tensor *list[] = {x.get(), x.get(), x.get()};
    go_back(ops::sum(*ops::mul(*ops::cat(TensorList(list, 3), 0), 2.0)));
    EXPECT_EQ(values_of(grad_of(*x, "a test")), (std::vector<double>{6, 6}));
}

TEST(OpCalls, AnAbsentOptionalTensorHasNoGradientAndHindersNone)
{
    const int64_t shape[] = {1, 2};
    const Tensor x = ops::reshape(*vector_of({1, 2}, true), shape);
    const Tensor weight = ops::reshape(*vector_of({3, 4}, true), shape);
    const Tensor y = ops::linear(*x, *weight, nullptr);
    EXPECT_EQ(values_of(y), (std::vector<double>{11}));
    yoke_tensor *root = ops::sum(*y).detach();
    const Tensor held = Tensor::adopt(root);
    yoke_tensor *inputs[] = {x.get(), weight.get()};
    const std::vector<Tensor> grads = gradients({&root, 1}, {}, inputs, false);
    EXPECT_EQ(values_of(grads[0]), (std::vector<double>{3, 4}));
    EXPECT_EQ(values_of(grads[1]), (std::vector<double>{1, 2}));
}

TEST(OpCalls, AStepOfTheOptimizerMarksWhatItHasWritten)
{
    const Tensor p = vector_of({1, 2}), g = vector_of({1, 1}), m = vector_of({0, 0});
    const uint32_t before = p->storage->version.load(), read_before = g->storage->version.load();
    yoke_tensor *params[] = {p.get()}, *grads[] = {g.get()}, *momenta[] = {m.get()};
    ops::sgd(params, grads, momenta, {}, nullptr, 0.5, 0.9, 0.0, false);
    EXPECT_EQ(values_of(p), (std::vector<double>{0.5, 1.5}));
    EXPECT_EQ(values_of(m), (std::vector<double>{1, 1}));
    EXPECT_EQ(p->storage->version.load(), before + 1);
    EXPECT_STREQ(p->storage->last_writer(), "_sgd");
    EXPECT_EQ(g->storage->version.load(), read_before) << "what is only read keeps its version";
}

TEST(OpCalls, ASavedParameterThatTheOptimizerChangedIsNamed)
{
    const Tensor p = vector_of({1, 2}, true), x = vector_of({3, 4}, true), m = vector_of({0, 0}),
                 g = vector_of({1, 1});
    const Tensor y = ops::sum(*ops::mul(*p, *x));
    yoke_tensor *params[] = {p.get()}, *grads[] = {g.get()}, *momenta[] = {m.get()};
    {
        const NoGrad no_grad;
        ops::sgd(params, grads, momenta, {}, nullptr, 0.5, 0.9, 0.0, false);
    }
    expect_error(YOKE_E_STATE, {"backward of mul", "'x'", "_sgd has changed it", "clone()"},
                 [&] { go_back(y); });
}

TEST(OpCalls, ANullOrAbsentTensorIsNamed)
{
    Tensor results[kMaxResults];
    yoke_arg args[] = {arg_none(), arg_int(1)};
    expect_error(YOKE_E_VALUE, {"add", "'x'", "missing"}, [&] { run(YOKE_OP_ADD, args, results); });
    const Tensor x = vector_of({1});
    yoke_tensor *list[] = {x.get(), nullptr};
    yoke_arg joined[] = {arg_tensors(TensorList(list, 2)), arg_int(0)};
    expect_error(YOKE_E_VALUE, {"cat", "'tensors'", "NULL"},
                 [&] { run(YOKE_OP_CAT, joined, results); });
}

TEST(OpCalls, AFailedCallLeavesNoTensorBehind)
{
    const Tensor x = vector_of({1, 2}, true), y = vector_of({1, 2, 3});
    const int64_t before = live_tensor_count();
    expect_error(YOKE_E_VALUE, {"add", "[2]", "[3]"}, [&] { ops::add(*x, *y); });
    expect_error(YOKE_E_TYPE, {"matmul"}, [&] { ops::matmul(*x, *ops::cast(*x, YOKE_F32)); });
    EXPECT_EQ(live_tensor_count(), before);
}

TEST(OpCalls, AShapeRuleMaySettleAsManyListsAsAnOpTakes)
{
    const Tensor x = vector_of({1});
    yoke_arg args[] = {arg_tensor(*x)};
    Plan plan(kOps[YOKE_OP_CLONE], args, *x->device);
    std::vector<IntList> kept;
    for (int64_t i = 0; i < 4; ++i) kept.push_back(plan.keep(Dims{i, i + 1}));
    for (int64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(kept[static_cast<size_t>(i)][0], i);
        EXPECT_EQ(kept[static_cast<size_t>(i)][1], i + 1);
    }
}

TEST(OpCalls, AGradientIsSummedOverWhatWasBroadcast)
{
    const Tensor x = vector_of({1, 2, 3}, true);
    const int64_t shape[] = {2, 1, 3};
    go_back(ops::sum(*ops::add(*x, *ops::ones(shape, YOKE_F64))));
    EXPECT_EQ(values_of(grad_of(*x, "a test")), (std::vector<double>{2, 2, 2}));
}

}  // namespace yoke
