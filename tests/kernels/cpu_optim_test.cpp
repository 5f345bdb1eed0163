// Kernels over many tensors at once: optimizers, loss scaling, norms, averages, in every dtype and mix of layouts.
#include "kernels/common/optim.h"

#include <algorithm>
#include <cmath>

#include "tests/kernels/cpu_harness.h"

using namespace cpu_test;

namespace {

const std::vector<std::vector<int64_t>> kShapes = {{7}, {}, {300, 300}, {3, 5}, {0}, {2, 600}};

// Returns a list of tensors; every second tensor is transposed or spread out.
std::vector<Array> make_list(yoke_dtype dtype, double from, double step, int period, int layout)
{
    std::vector<Array> list;
    for (size_t i = 0; i < kShapes.size(); i++) {
        const std::vector<int64_t> &shape = kShapes[i];
        Array dense(dtype, shape);
        std::vector<double> values = ramp(dense.numel(), from, step, period);
        if (shape.size() == 2 && (int)(i % 3) == layout % 3)
            dense = Array(dtype, {shape[1], shape[0]}).permuted({1, 0});
        else if (shape.size() == 2 && layout >= 3)
            dense = Array(dtype, {shape[0], shape[1] * 2}).sliced(1, 0, 2, shape[1]);
        dense.set(values);
        list.push_back(dense);
    }
    return list;
}

std::vector<std::vector<double>> values_of(const std::vector<Array> &list)
{
    std::vector<std::vector<double>> values;
    for (const Array &each : list) values.push_back(each.values());
    return values;
}

struct Operands {
    std::vector<Array> arrays;
    std::vector<bool> written;

    void add(const std::vector<Array> &list, bool is_written)
    {
        arrays.insert(arrays.end(), list.begin(), list.end());
        written.insert(written.end(), list.size(), is_written);
    }
    void add(const Array &array, bool is_written) { add(std::vector<Array>{array}, is_written); }
};

yoke_status launch(const Level &level, int op, const Operands &operands,
                   const std::vector<yoke_arg> &params)
{
    return launch(level, op, operands.arrays, operands.arrays.size(), params, operands.written);
}

Array scalar(double value)
{
    return Array(YOKE_F32, {}, {value});
}

// A parameter dtype with its state's, and whether there are masters.
struct Kind {
    yoke_dtype param, state;
    bool has_masters;
};
const Kind kKinds[] = {{YOKE_F32, YOKE_F32, false},   {YOKE_F64, YOKE_F64, false},
                       {YOKE_BF16, YOKE_BF16, false}, {YOKE_F16, YOKE_F16, false},
                       {YOKE_BF16, YOKE_F32, true},   {YOKE_F16, YOKE_F32, true}};

struct Step {
    std::vector<Array> params, grads, first, second, steps, masters;
    Array found = scalar(0);

    Step(const Kind &kind, int layout)
        : params(make_list(kind.param, -1, 0.25, 13, layout)),
          grads(make_list(kind.param, -2, 0.5, 9, layout + 1)),
          first(make_list(kind.state, 0, 0, 13, layout)),
          second(make_list(kind.state, 0, 0, 13, layout + 2))
    {
        for (size_t i = 0; i < kShapes.size(); i++) steps.push_back(scalar(0));
        if (kind.has_masters) masters = make_list(YOKE_F32, -1, 0.25, 13, layout + 1);
    }
    // Returns the tensors that the step changes.
    const std::vector<Array> &weights() const { return masters.empty() ? params : masters; }
};

}  // namespace

TEST(CpuSgd, OneLaunchStepsEveryTensorInEveryDtypeAndLayout)
{
    const double lr = 0.25, momentum = 0.5, decay = 0.125;
    for (const Level &level : levels())
        for (const Kind &kind : kKinds)
            for (int variant = 0; variant < 4; variant++) {
                const bool nesterov = variant & 1, has_momentum = variant & 2;
                Step step(kind, variant == 1 || variant == 2 ? 3 : 0);
                Operands operands;
                operands.add(step.params, true);
                operands.add(step.grads, false);
                if (has_momentum) operands.add(step.first, true);
                operands.add(step.masters, true);
                operands.add(step.found, false);
                auto p = values_of(step.weights()), b = values_of(step.first);
                for (int t = 0; t < 2; t++) {
                    ASSERT_EQ(launch(level, YOKE_OP__SGD, operands,
                                     {number(lr), number(has_momentum ? momentum : 0),
                                      number(decay), integer(nesterov && has_momentum)}),
                              YOKE_OK);
                    for (size_t i = 0; i < p.size(); i++) {
                        std::vector<double> g = step.grads[i].values();
                        for (size_t j = 0; j < g.size(); j++) {
                            double d = g[j] + decay * p[i][j];
                            b[i][j] = momentum * b[i][j] + d;
                            p[i][j] -= lr * (!has_momentum ? d
                                             : nesterov    ? d + momentum * b[i][j]
                                                           : b[i][j]);
                        }
                        expect_near(step.params[i].values(), p[i], 2 * tolerance(kind.param),
                                    level.name + std::to_string(kind.param));
                    }
                }
            }
}

TEST(CpuAdam, OneLaunchStepsEveryTensorInEveryDtypeAndLayout)
{
    const double lr = 0.125, beta1 = 0.5, beta2 = 0.75, eps = 1e-3, decay = 0.25;
    for (const Level &level : levels())
        for (const Kind &kind : kKinds)
            for (const bool decoupled : {false, true}) {
                Step step(kind, decoupled ? 3 : 0);
                Operands operands;
                operands.add(step.params, true);
                operands.add(step.grads, false);
                operands.add(step.first, true);
                operands.add(step.second, true);
                operands.add(step.steps, true);
                operands.add(step.masters, true);
                operands.add(step.found, false);
                auto p = values_of(step.weights()), m = values_of(step.first), v = m;
                for (int t = 1; t <= 2; t++) {
                    ASSERT_EQ(launch(level, decoupled ? YOKE_OP__ADAMW : YOKE_OP__ADAM, operands,
                                     {number(lr), number(beta1), number(beta2), number(eps),
                                      number(decay)}),
                              YOKE_OK);
                    for (size_t i = 0; i < p.size(); i++) {
                        EXPECT_EQ(step.steps[i].at(0), t);
                        std::vector<double> g = step.grads[i].values();
                        for (size_t j = 0; j < g.size(); j++) {
                            double d = decoupled ? g[j] : g[j] + decay * p[i][j];
                            m[i][j] += (1 - beta1) * (d - m[i][j]);
                            v[i][j] = beta2 * v[i][j] + (1 - beta2) * d * d;
                            if (decoupled) p[i][j] *= 1 - lr * decay;
                            p[i][j] -= lr / (1 - std::pow(beta1, t)) * m[i][j] /
                                       (std::sqrt(v[i][j] / (1 - std::pow(beta2, t))) + eps);
                        }
                        expect_near(step.params[i].values(), p[i], 8 * tolerance(kind.param),
                                    level.name + std::to_string(kind.param));
                    }
                }
            }
}

TEST(CpuOptim, NothingChangesWhereAnOverflowWasFound)
{
    for (const Level &level : levels())
        for (const Kind &kind : kKinds) {
            Step step(kind, 0);
            step.found = scalar(1);
            Operands sgd, adam;
            for (Operands *operands : {&sgd, &adam}) {
                operands->add(step.params, true);
                operands->add(step.grads, false);
                operands->add(step.first, true);
                if (operands == &adam) {
                    operands->add(step.second, true);
                    operands->add(step.steps, true);
                }
                operands->add(step.masters, true);
                operands->add(step.found, false);
            }
            const auto before = values_of(adam.arrays);
            ASSERT_EQ(
                launch(level, YOKE_OP__SGD, sgd, {number(1), number(0.5), number(0), integer(0)}),
                YOKE_OK);
            for (int op : {YOKE_OP__ADAM, YOKE_OP__ADAMW})
                ASSERT_EQ(launch(level, op, adam,
                                 {number(1), number(0.5), number(0.5), number(1), number(1)}),
                          YOKE_OK);
            EXPECT_EQ(values_of(adam.arrays), before);
        }
}

TEST(CpuScaling, UnscaleDividesEveryGradientAndFindsWhatIsNotFinite)
{
    for (const Level &level : levels())
        for (yoke_dtype dtype : float_dtypes())
            for (double bad : {0.0, (double)INFINITY, -(double)INFINITY, std::nan("")}) {
                std::vector<Array> grads = make_list(dtype, -2, 0.5, 9, bad < 0 ? 0 : 3);
                std::vector<std::vector<double>> want = values_of(grads);
                if (bad != 0) {
                    std::vector<double> spoiled = want[2];
                    spoiled[77777] = bad;
                    grads[2].set(spoiled);
                }
                Operands operands;
                Array found = scalar(7);
                operands.add(grads, true);
                operands.add(found, true);
                operands.add(scalar(4), false);
                ASSERT_EQ(launch(level, YOKE_OP__UNSCALE, operands, {}), YOKE_OK);
                EXPECT_EQ(found.at(0), bad != 0);
                for (size_t i = 0; i < grads.size(); i++) {
                    std::vector<double> got = grads[i].values();
                    for (size_t j = 0; j < got.size(); j++) {
                        if (i == 2 && j == 77777 && bad != 0) continue;
                        ASSERT_EQ(got[j], want[i][j] / 4) << i << ' ' << j;
                    }
                }
            }
}

TEST(CpuScaling, TheScaleIsUpdatedFromAllOverflowFlags)
{
    for (const Level &level : levels())
        for (int which = -1; which < 3; which++) {
            Array scale = scalar(8), tracker(YOKE_I32, {}, {0});
            Operands operands;
            operands.add(scale, true);
            operands.add(tracker, true);
            for (int i = 0; i < 3; i++) operands.add(scalar(i == which), false);
            ASSERT_EQ(launch(level, YOKE_OP__UPDATE_SCALE, operands,
                             {number(2), number(0.5), integer(2), number(0x1p-126)}),
                      YOKE_OK);
            EXPECT_EQ(scale.at(0), which < 0 ? 8 : 4);
            EXPECT_EQ(tracker.at(0), which < 0);
        }
}

TEST(CpuNorm, TheNormOfAllTensorsIsThatOfOneVectorWhateverTheThreads)
{
    for (const Level &level : levels())
        for (yoke_dtype dtype : float_dtypes())
            for (double p : {2.0, 1.0, 3.0, (double)INFINITY}) {
                std::vector<double> got;
                double want = 0;
                for (int threads : {1, 2}) {
                    set_threads(threads);
                    std::vector<Array> tensors = make_list(dtype, -2, 0.5, 9, 3);
                    Array norm(YOKE_F64, {});
                    Operands operands;
                    operands.add(tensors, false);
                    operands.add(norm, true);
                    ASSERT_EQ(launch(level, YOKE_OP__TOTAL_NORM, operands, {number(p)}), YOKE_OK);
                    got.push_back(norm.at(0));
                    want = 0;
                    for (const auto &values : values_of(tensors))
                        for (double x : values)
                            want = std::isinf(p) ? std::max(want, std::abs(x))
                                                 : want + std::pow(std::abs(x), p);
                    if (!std::isinf(p)) want = std::pow(want, 1 / p);
                }
                EXPECT_EQ(got[0], got[1]);
                EXPECT_NEAR(got[0], want, want * 1e-6);
            }
    set_threads(2);
}

TEST(CpuNorm, NanAndInfinityWin)
{
    for (const Level &level : levels())
        for (double p : {2.0, 1.0, (double)INFINITY})
            for (double bad : {(double)INFINITY, std::nan("")}) {
                std::vector<double> values(5000, 1.0);
                values[1234] = bad;
                Array norm(YOKE_F64, {});
                Operands operands;
                operands.add(Array(YOKE_F32, {5000}, values), false);
                operands.add(norm, true);
                ASSERT_EQ(launch(level, YOKE_OP__TOTAL_NORM, operands, {number(p)}), YOKE_OK);
                EXPECT_EQ(std::isnan(norm.at(0)), std::isnan(bad)) << p;
                EXPECT_FALSE(std::isfinite(norm.at(0))) << p;
            }
}

TEST(CpuNorm, ClippingMultipliesAllTensorsByOneFactor)
{
    for (const Level &level : levels())
        for (yoke_dtype dtype : float_dtypes())
            for (double norm : {0.5, 8.0}) {
                std::vector<Array> tensors = make_list(dtype, -2, 0.5, 9, 3);
                std::vector<std::vector<double>> want = values_of(tensors);
                Operands operands;
                operands.add(tensors, true);
                operands.add(Array(YOKE_F64, {}, {norm}), false);
                ASSERT_EQ(launch(level, YOKE_OP__CLIP_ALL, operands, {number(2)}), YOKE_OK);
                for (size_t i = 0; i < tensors.size(); i++) {
                    for (double &x : want[i]) x *= std::min(1.0, 2 / (norm + 1e-6));
                    expect_near(tensors[i].values(), want[i], tolerance(dtype), level.name);
                }
            }
}

TEST(CpuAverage, AveragesMoveTowardsTheTensors)
{
    for (const Level &level : levels())
        for (yoke_dtype dtype : float_dtypes()) {
            const yoke_dtype kept = dtype == YOKE_F64 ? YOKE_F64 : YOKE_F32;
            std::vector<Array> averages = make_list(kept, 1, 0.5, 7, 0);
            std::vector<Array> tensors = make_list(dtype, -2, 0.5, 9, 3);
            auto want = values_of(averages), x = values_of(tensors);
            Operands operands;
            operands.add(averages, true);
            operands.add(tensors, false);
            ASSERT_EQ(launch(level, YOKE_OP__LERP_ALL, operands, {number(0.25)}), YOKE_OK);
            for (size_t i = 0; i < averages.size(); i++) {
                for (size_t j = 0; j < want[i].size(); j++)
                    want[i][j] += 0.25 * (x[i][j] - want[i][j]);
                expect_near(averages[i].values(), want[i], tolerance(kept), level.name);
            }
        }
}
