// Values of attention's graphs from the fake cuDNN, which interprets graphs. References are sums in double precision,
// and differences of these sums for the gradients.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "kernels/cuda/host/cudnn/attention_graph.h"

namespace yoke::cuda {

namespace {

using Name = AttentionName;
using Numbers = std::vector<double>;

constexpr int64_t kBatch = 2, kHeads = 4, kKeyHeads = 2, kQueries = 3, kKeys = 4, kWidth = 2,
                  kValueWidth = 3;
constexpr double kTimes = 0.7;  // the scale of scores

// Step between the scaled scores and the softmax. kRowBias is the same for all queries.
enum class Between { kNothing, kCausal, kBias, kRowBias };

// Returns strides of `count` heads with all rows side by side. Row-major code could not get this order right by
// chance.
HeadStrides side_by_side(int64_t count, int64_t length, int64_t width)
{
    return {length * count * width, width, count * width};
}

AttentionShape shape_of(Between between)
{
    const HeadStrides query = side_by_side(kHeads, kQueries, kWidth),
                      key = side_by_side(kKeyHeads, kKeys, kWidth),
                      value = side_by_side(kKeyHeads, kKeys, kValueWidth),
                      result = side_by_side(kHeads, kQueries, kValueWidth);
    const bool is_causal = between == Between::kCausal;
    AttentionShape shape = {YOKE_F32, kBatch,      kHeads,    kKeyHeads, kQueries, kKeys,
                            kWidth,   kValueWidth, is_causal, 16,        query,    key,
                            value,    result,      result,    query,     key,      value};
    shape.has_bias = between == Between::kBias || between == Between::kRowBias;
    shape.bias_alignment = 4;
    shape.bias = between == Between::kBias ? HeadStrides{0, kQueries * kKeys, kKeys}
                                           : HeadStrides{kKeys, 0, 0};
    return shape;
}

size_t at(const HeadStrides &strides, int64_t batch, int64_t head, int64_t row, int64_t column)
{
    return static_cast<size_t>(batch * strides.batch + head * strides.head + row * strides.row +
                               column);
}

Numbers drawn(int64_t count, int seed)
{
    Numbers all(static_cast<size_t>(count));
    for (size_t i = 0; i < all.size(); ++i)
        all[i] = std::sin(1.3 * static_cast<double>(i) + seed) + 0.1 * seed;
    return all;
}

struct Inputs {
    Numbers query = drawn(kBatch * kHeads * kQueries * kWidth, 1),
            key = drawn(kBatch * kKeyHeads * kKeys * kWidth, 2),
            value = drawn(kBatch * kKeyHeads * kKeys * kValueWidth, 3),
            gradient = drawn(kBatch * kHeads * kQueries * kValueWidth, 4),
            bias = drawn(kHeads * kQueries * kKeys, 5);
};

// The result, and the log-sum-exp of each row.
void attend(const AttentionShape &s, const Inputs &in, Numbers &result, Numbers &statistics)
{
    result.assign(in.gradient.size(), 0);
    statistics.clear();
    for (int64_t b = 0; b < kBatch; ++b)
        for (int64_t h = 0; h < kHeads; ++h)
            for (int64_t q = 0; q < kQueries; ++q) {
                const int64_t shared = h / (kHeads / kKeyHeads),
                              keys = s.causal ? std::min(q + 1, kKeys) : kKeys;
                Numbers weights;
                double sum = 0;
                for (int64_t k = 0; k < keys; ++k) {
                    double score = 0;
                    for (int64_t i = 0; i < kWidth; ++i)
                        score +=
                            in.query[at(s.query, b, h, q, i)] * in.key[at(s.key, b, shared, k, i)];
                    const double bias = s.has_bias ? in.bias[at(s.bias, b, h, q, k)] : 0;
                    weights.push_back(std::exp(score * kTimes + bias));
                    sum += weights.back();
                }
                for (int64_t k = 0; k < keys; ++k)
                    for (int64_t i = 0; i < kValueWidth; ++i)
                        result[at(s.result, b, h, q, i)] += weights[static_cast<size_t>(k)] / sum *
                                                            in.value[at(s.value, b, shared, k, i)];
                statistics.push_back(std::log(sum));
            }
}

// Returns the derivatives of the result's sum, weighted by the gradient, by the numbers of one input.
Numbers differences(const AttentionShape &s, Inputs in, Numbers Inputs::*of)
{
    constexpr double kStep = 1e-5;
    const auto loss = [&] {
        Numbers result, statistics;
        attend(s, in, result, statistics);
        double sum = 0;
        for (size_t i = 0; i < result.size(); ++i) sum += result[i] * in.gradient[i];
        return sum;
    };
    Numbers all;
    for (double &one : in.*of) {
        const double was = one;
        one = was + kStep;
        const double more = loss();
        one = was - kStep;
        all.push_back((more - loss()) / (2 * kStep));
        one = was;
    }
    return all;
}

}  // namespace

class AttentionValues : public testing::TestWithParam<Between> {
protected:
    void SetUp() override
    {
        void *library = dlopen(FAKE, RTLD_NOW | RTLD_LOCAL);
        ASSERT_TRUE(library) << dlerror();
        constexpr const char *kNames[] = {YOKE_CUDNN_CALLS(YOKE_LIBRARY_NAME)};
        ASSERT_EQ(find_calls(library, kNames, call_), nullptr);
        compute_ = reinterpret_cast<decltype(compute_)>(dlsym(library, "fake_cudnn_compute"));
        attend(shape_, in_, result_, statistics_);
        put(Name::kQuery, in_.query);
        put(Name::kKey, in_.key);
        put(Name::kValue, in_.value);
        put(Name::kScale, {kTimes});
        if (shape_.causal) put(Name::kMasked, {kMaskedScore});
        if (shape_.has_bias) put(Name::kBias, in_.bias);
    }
    void put(int64_t name, const Numbers &values)
    {
        memory_[name].assign(values.begin(), values.end());
    }
    void make_room(int64_t name, size_t count) { memory_[name].assign(count, NAN); }

    void compute(const std::function<bool(Graph &)> &build)
    {
        Graph graph(call_, {reinterpret_cast<cudnnHandle_t>(this), nullptr});
        ASSERT_TRUE(build(graph)) << graph.steps.failure().said;
        std::vector<int64_t> names;
        std::vector<void *> places;
        for (auto &[name, values] : memory_) {
            names.push_back(name);
            places.push_back(values.data());
        }
        ASSERT_EQ(
            compute_(graph.get(), static_cast<int>(names.size()), names.data(), places.data()), 0);
    }
    void expect(int64_t name, const Numbers &wanted, double tolerance)
    {
        ASSERT_EQ(memory_[name].size(), wanted.size());
        for (size_t i = 0; i < wanted.size(); ++i)
            EXPECT_NEAR(static_cast<double>(memory_[name][i]), wanted[i], tolerance)
                << name << "[" << i << "]";
    }

    const AttentionShape shape_ = shape_of(GetParam());
    const Inputs in_;
    Numbers result_, statistics_;

private:
    CudnnCalls call_;
    int (*compute_)(void *, int, const int64_t *, void *const *);
    std::map<int64_t, std::vector<float>> memory_;
};

TEST_P(AttentionValues, AreTheResultAndTheLogSumExp)
{
    make_room(Name::kResult, result_.size());
    make_room(Name::kStatistics, statistics_.size());
    compute([&](Graph &graph) { return build_attention(graph, shape_); });
    expect(Name::kResult, result_, 1e-5);
    expect(Name::kStatistics, statistics_, 1e-5);
}

TEST_P(AttentionValues, AreTheGradientsInBothSpellings)
{
    put(Name::kResult, result_);
    put(Name::kStatistics, statistics_);
    put(Name::kGradient, in_.gradient);
    put(Name::kOne, {1});
    for (const bool deterministic : {true, false}) {
        make_room(Name::kQueryGradient, in_.query.size());
        make_room(Name::kKeyGradient, in_.key.size());
        make_room(Name::kValueGradient, in_.value.size());
        make_room(Name::kRowSum, statistics_.size());
        if (!deterministic) put(Name::kAccumulator, Numbers(in_.query.size(), 0));
        compute(
            [&](Graph &graph) { return build_attention_backward(graph, shape_, deterministic); });
        expect(Name::kQueryGradient, differences(shape_, in_, &Inputs::query), 1e-4);
        expect(Name::kKeyGradient, differences(shape_, in_, &Inputs::key), 1e-4);
        expect(Name::kValueGradient, differences(shape_, in_, &Inputs::value), 1e-4);
    }
}

INSTANTIATE_TEST_SUITE_P(FullCausalAndBiased, AttentionValues,
                         testing::Values(Between::kNothing, Between::kCausal, Between::kBias,
                                         Between::kRowBias));

}  // namespace yoke::cuda
