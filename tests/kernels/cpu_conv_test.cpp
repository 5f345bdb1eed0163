// Convolution's kernels at every instruction set, against its definition in doubles.
#include <cmath>

#include "tests/kernels/cpu_harness.h"

using namespace cpu_test;

namespace {

struct Problem {
    int64_t n, c, h, w, o, kh, kw, stride, padding, dilation, groups;

    int64_t out(int64_t size, int64_t kernel) const
    {
        return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
    }
    std::vector<int64_t> x_shape() const { return {n, h, w, c}; }
    std::vector<int64_t> out_shape() const { return {n, out(h, kh), out(w, kw), o}; }
    std::vector<int64_t> weight_shape() const { return {o, c / groups, kh, kw}; }
    std::vector<int64_t> window() const
    {
        return {stride, stride, padding, padding, dilation, dilation};
    }
};

// Channels and positions around the rows, panels, tiles and parts of every level; strides that leave pixels out.
const Problem kProblems[] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1},       {2, 5, 9, 8, 7, 3, 3, 1, 1, 1, 1},
    {1, 33, 10, 10, 65, 3, 2, 1, 1, 1, 1},   {1, 130, 3, 4, 17, 2, 2, 1, 1, 2, 1},
    {1, 3, 15, 14, 33, 5, 4, 2, 2, 1, 1},    {1, 4, 11, 9, 6, 2, 2, 3, 1, 1, 2},
    {1, 6, 12, 13, 4, 3, 3, 4, 3, 6, 2},     {1, 1, 70, 60, 5, 2, 3, 1, 1, 1, 1},
    {1, 300, 4, 3, 300, 3, 3, 1, 1, 1, 300}, {3, 7, 19, 17, 7, 3, 3, 2, 1, 1, 7},
    {1, 5, 6, 6, 10, 3, 3, 1, 1, 1, 5},      {2, 257, 3, 3, 3, 1, 1, 1, 0, 1, 1}};

std::vector<double> waves(const std::vector<int64_t> &shape, double pace)
{
    int64_t n = 1;
    for (int64_t size : shape) n *= size;
    std::vector<double> list((size_t)n);
    for (int64_t i = 0; i < n; i++) list[(size_t)i] = std::sin(pace * (double)i);
    return list;
}

// visit(index in x, in the weight, in the result) of each product that the definition has, all but x's padding. x and
// the result lie NHWC.
template <class Visit>
void each_product(const Problem &p, const Visit &visit)
{
    const int64_t oh = p.out(p.h, p.kh), ow = p.out(p.w, p.kw), depth = p.c / p.groups;
    for (int64_t place = 0; place < p.n * oh * ow * p.o; place++) {
        const int64_t o = place % p.o, x_out = place / p.o % ow, y_out = place / p.o / ow % oh,
                      image = place / p.o / ow / oh, first = o / (p.o / p.groups) * depth;
        for (int64_t term = 0; term < depth * p.kh * p.kw; term++) {
            const int64_t j = term % p.kw, i = term / p.kw % p.kh, channel = term / p.kw / p.kh;
            const int64_t y = y_out * p.stride + i * p.dilation - p.padding,
                          x = x_out * p.stride + j * p.dilation - p.padding;
            if (y < 0 || y >= p.h || x < 0 || x >= p.w) continue;
            visit((size_t)(((image * p.h + y) * p.w + x) * p.c + first + channel),
                  (size_t)(o * depth * p.kh * p.kw + term), (size_t)place);
        }
    }
}

Array nchw(const Array &x)
{
    return x.permuted({0, 3, 1, 2});
}

void add_bias(std::vector<double> &values, const std::vector<double> &bias)
{
    for (size_t i = 0; i < values.size(); i++) values[i] += bias[i % bias.size()];
}

std::string what(const Level &level, yoke_dtype dtype, const Problem &p)
{
    return level.name + " dtype " + std::to_string(dtype) + " problem " +
           std::to_string(&p - kProblems);
}

// run(level, dtype, problem) for all of them.
template <class Run>
void each_case(const Run &run)
{
    for (const Level &level : levels())
        for (yoke_dtype dtype : float_dtypes())
            for (const Problem &p : kProblems) run(level, dtype, p);
}

}  // namespace

TEST(CpuConv, TheResultIsItsDefinitions)
{
    each_case([](const Level &level, yoke_dtype dtype, const Problem &p) {
        const Array x(dtype, p.x_shape(), waves(p.x_shape(), 0.7)),
            weight(dtype, p.weight_shape(), waves(p.weight_shape(), 1.3)),
            bias(dtype, {p.o}, waves({p.o}, 0.4)), out(dtype, p.out_shape());
        std::vector<double> want((size_t)out.numel());
        const std::vector<double> from = x.values(), taps = weight.values();
        each_product(p, [&](size_t i, size_t j, size_t k) { want[k] += from[i] * taps[j]; });
        for (bool has_bias : {false, true}) {
            ASSERT_EQ(launch(level, YOKE_OP__CONV,
                             {nchw(x), weight, has_bias ? bias : Array::absent(), nchw(out)}, 3,
                             {integers(p.window()), integer(p.groups)}),
                      YOKE_OK)
                << take_error();
            if (has_bias) add_bias(want, bias.values());
            expect_near(out.values(), want, 4 * tolerance(dtype), what(level, dtype, p));
        }
    });
}

TEST(CpuConv, TheGradientByDataIsItsDefinitions)
{
    each_case([](const Level &level, yoke_dtype dtype, const Problem &p) {
        const Array grad(dtype, p.out_shape(), waves(p.out_shape(), 0.7)),
            weight(dtype, p.weight_shape(), waves(p.weight_shape(), 1.3)),
            bias(dtype, {p.c}, waves({p.c}, 0.4)), x(dtype, p.x_shape());
        std::vector<double> want((size_t)x.numel());
        const std::vector<double> from = grad.values(), taps = weight.values();
        each_product(p, [&](size_t i, size_t j, size_t k) { want[i] += from[k] * taps[j]; });
        for (bool has_bias : {false, true}) {
            ASSERT_EQ(launch(level, YOKE_OP__CONV_DATA,
                             {nchw(grad), weight, has_bias ? bias : Array::absent(), nchw(x)}, 3,
                             {integers({p.h, p.w}), integers(p.window()), integer(p.groups)}),
                      YOKE_OK)
                << take_error();
            if (has_bias) add_bias(want, bias.values());
            expect_near(x.values(), want, 4 * tolerance(dtype), what(level, dtype, p));
        }
    });
}

TEST(CpuConv, TheGradientByWeightIsItsDefinitions)
{
    each_case([](const Level &level, yoke_dtype dtype, const Problem &p) {
        const Array grad(dtype, p.out_shape(), waves(p.out_shape(), 0.7)),
            x(dtype, p.x_shape(), waves(p.x_shape(), 1.3)), weight(dtype, p.weight_shape());
        std::vector<double> want((size_t)weight.numel());
        const std::vector<double> grads = grad.values(), from = x.values();
        each_product(p, [&](size_t i, size_t j, size_t k) { want[j] += grads[k] * from[i]; });
        ASSERT_EQ(launch(level, YOKE_OP__CONV_WEIGHT, {nchw(grad), nchw(x), weight}, 2,
                         {integers({p.kh, p.kw}), integers(p.window()), integer(p.groups)}),
                  YOKE_OK)
            << take_error();
        expect_near(weight.values(), want, 4 * tolerance(dtype), what(level, dtype, p));
    });
}

TEST(CpuConv, ThreadsChangeNoBit)
{
    for (const Level &level : levels())
        for (const Problem &p : kProblems) {
            const Array grad(YOKE_F32, p.out_shape(), waves(p.out_shape(), 0.7)),
                x(YOKE_F32, p.x_shape(), waves(p.x_shape(), 1.3));
            std::vector<std::vector<double>> found;
            for (int threads : {1, 2, 5}) {
                set_threads(threads);
                const Array weight(YOKE_F32, p.weight_shape()), dx(YOKE_F32, p.x_shape());
                ASSERT_EQ(launch(level, YOKE_OP__CONV_WEIGHT, {nchw(grad), nchw(x), weight}, 2,
                                 {integers({p.kh, p.kw}), integers(p.window()), integer(p.groups)}),
                          YOKE_OK);
                ASSERT_EQ(launch(level, YOKE_OP__CONV_DATA,
                                 {nchw(grad), weight, Array::absent(), nchw(dx)}, 3,
                                 {integers({p.h, p.w}), integers(p.window()), integer(p.groups)}),
                          YOKE_OK);
                found.push_back(weight.values());
                found.push_back(dx.values());
            }
            set_threads(2);
            for (size_t i = 2; i < found.size(); i++)
                EXPECT_EQ(found[i], found[i % 2]) << what(level, YOKE_F32, p);
        }
}

TEST(CpuConv, ADtypeThatIsNotFloatingIsRefused)
{
    const Array x(YOKE_I32, {1, 2, 2, 1}), weight(YOKE_I32, {1, 1, 1, 1}),
        out(YOKE_I32, {1, 2, 2, 1});
    EXPECT_EQ(launch(levels()[0], YOKE_OP__CONV, {nchw(x), weight, Array::absent(), nchw(out)}, 3,
                     {integers({1, 1, 0, 0, 1, 1}), integer(1)}),
              YOKE_E_TYPE);
    EXPECT_NE(take_error().find("conv"), std::string::npos);
}
