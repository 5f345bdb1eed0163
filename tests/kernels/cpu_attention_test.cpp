// Attention's kernels at every instruction set, against its definition in doubles.
#include <cmath>
#include <limits>

#include "tests/kernels/cpu_harness.h"

using namespace cpu_test;

namespace {

struct Problem {
    int64_t heads, queries, keys, width, value_width;
    bool causal;
};

// Lengths around the blocks and panels of every level.
const Problem kProblems[] = {{2, 5, 7, 3, 3, false},     {1, 64, 64, 16, 16, true},
                             {1, 130, 67, 33, 20, true}, {2, 70, 129, 8, 40, false},
                             {1, 1, 1, 1, 1, true},      {3, 65, 66, 64, 64, true}};

double wave(int64_t i, double pace)
{
    return std::sin(pace * (double)i);
}

std::vector<double> waves(int64_t n, double pace)
{
    std::vector<double> list((size_t)n);
    for (int64_t i = 0; i < n; i++) list[(size_t)i] = wave(i, pace);
    return list;
}

struct Result {
    std::vector<double> out, lse, dq, dk, dv;
};

// Computes the definition and its derivative, for each head and each query by itself.
Result attend(const Problem &p, const std::vector<double> &q, const std::vector<double> &k,
              const std::vector<double> &v, const std::vector<double> &g, double scale)
{
    Result r;
    r.dq.resize(q.size()), r.dk.resize(k.size()), r.dv.resize(v.size());
    for (int64_t h = 0; h < p.heads; h++)
        for (int64_t i = 0; i < p.queries; i++) {
            const double *query = &q[(size_t)((h * p.queries + i) * p.width)];
            const double *grad = &g[(size_t)((h * p.queries + i) * p.value_width)];
            const int64_t seen = p.causal ? std::min(p.keys, i + 1) : p.keys;
            std::vector<double> weight((size_t)seen), slope((size_t)seen);
            double sum = 0, dot = 0;
            for (int64_t j = 0; j < seen; j++) {
                double score = 0;
                for (int64_t d = 0; d < p.width; d++)
                    score += query[d] * k[(size_t)((h * p.keys + j) * p.width + d)];
                sum += weight[(size_t)j] = std::exp(score * scale);
            }
            std::vector<double> out((size_t)p.value_width);
            for (int64_t j = 0; j < seen; j++) {
                weight[(size_t)j] /= sum;
                for (int64_t d = 0; d < p.value_width; d++) {
                    const size_t at = (size_t)((h * p.keys + j) * p.value_width + d);
                    out[(size_t)d] += weight[(size_t)j] * v[at];
                    slope[(size_t)j] += grad[d] * v[at];
                    r.dv[at] += weight[(size_t)j] * grad[d];
                }
                dot += weight[(size_t)j] * slope[(size_t)j];
            }
            for (int64_t j = 0; j < seen; j++)
                for (int64_t d = 0; d < p.width; d++) {
                    const double ds = weight[(size_t)j] * (slope[(size_t)j] - dot) * scale;
                    const size_t at = (size_t)((h * p.keys + j) * p.width + d);
                    r.dq[(size_t)((h * p.queries + i) * p.width + d)] += ds * k[at];
                    r.dk[at] += ds * query[d];
                }
            r.out.insert(r.out.end(), out.begin(), out.end());
            r.lse.push_back(std::log(sum));
        }
    return r;
}

std::vector<yoke_arg> params(const Problem &p, double scale, double dropout = 0)
{
    return {integer(p.causal), number(scale), number(dropout), integer(7), integer(0)};
}

}  // namespace

TEST(CpuAttention, EveryLengthWidthAndDtypeAgreesWithItsDefinition)
{
    for (const Level &level : levels())
        for (yoke_dtype dtype : {YOKE_F64, YOKE_F32, YOKE_BF16, YOKE_F16})
            for (const Problem &p : kProblems) {
                const double scale = 1 / std::sqrt((double)p.width);
                Array q(dtype, {p.heads, p.queries, p.width},
                        waves(p.heads * p.queries * p.width, 0.7)),
                    k(dtype, {p.heads, p.keys, p.width}, waves(p.heads * p.keys * p.width, 1.3)),
                    v(dtype, {p.heads, p.keys, p.value_width},
                      waves(p.heads * p.keys * p.value_width, 0.9)),
                    g(dtype, {p.heads, p.queries, p.value_width},
                      waves(p.heads * p.queries * p.value_width, 0.3));
                const Result want =
                    attend(p, q.values(), k.values(), v.values(), g.values(), scale);
                const yoke_dtype wide = dtype == YOKE_F64 ? YOKE_F64 : YOKE_F32;
                Array out(dtype, g.shape), lse(wide, {p.heads, p.queries}), dq(dtype, q.shape),
                    dk(dtype, k.shape), dv(dtype, v.shape), none = Array::absent();
                const std::string what = level.name + " dtype " + std::to_string(dtype) + " keys " +
                                         std::to_string(p.keys);
                ASSERT_EQ(launch(level, YOKE_OP__ATTENTION, {q, k, v, none, out, lse}, 4,
                                 params(p, scale)),
                          YOKE_OK)
                    << take_error();
                expect_near(out.values(), want.out, 2 * tolerance(dtype), what);
                expect_near(lse.values(), want.lse, 2 * tolerance(wide), what);
                ASSERT_EQ(launch(level, YOKE_OP__ATTENTION_BACKWARD,
                                 {g, q, k, v, none, out, lse, dq, dk, dv}, 7, params(p, scale)),
                          YOKE_OK)
                    << take_error();
                expect_near(dq.values(), want.dq, 8 * tolerance(dtype), what + " dq");
                expect_near(dk.values(), want.dk, 8 * tolerance(dtype), what + " dk");
                expect_near(dv.values(), want.dv, 8 * tolerance(dtype), what + " dv");
            }
}
