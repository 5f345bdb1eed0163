// Gradients of products, and casts of many tensors: ops that write tensors which the caller has made.
#include "launch.h"

#include <random>

namespace yoke::test {

class ProductGradients : public Contract {
protected:
    void SetUp() override
    {
        Contract::SetUp();
        if (device_ && !table_->kernels[YOKE_OP__PRODUCT_GRADIENTS])
            GTEST_SKIP() << "this backend has no kernels";
    }
    struct Way {
        bool adds, with_bias, transposed;
    };
    template <class T>
    void check(int64_t rows, const Way &way);
};
YOKE_ON_EVERY_BACKEND(ProductGradients);

namespace {

constexpr int64_t kIn = 5, kOut = 7;

// Whole numbers so small that every sum is exact, in halves too.
std::vector<int> small_numbers(int64_t count, unsigned seed)
{
    std::mt19937 random(seed);
    std::vector<int> numbers(static_cast<size_t>(count));
    for (int &each : numbers) each = static_cast<int>(random() % 5) - 2;
    return numbers;
}

// Bits of a whole number from -2 to 2 as float16.
uint16_t half_of(int number)
{
    constexpr uint16_t kBits[] = {0, 0x3c00, 0x4000};
    return static_cast<uint16_t>(kBits[std::abs(number)] | (number < 0 ? 0x8000 : 0));
}

template <class T>
std::vector<T> converted(const std::vector<int> &numbers)
{
    std::vector<T> all;
    for (const int each : numbers)
        if constexpr (std::is_same_v<T, uint16_t>)
            all.push_back(half_of(each));
        else
            all.push_back(static_cast<T>(each));
    return all;
}

// Whole numbers of gradients, in order: of the weight, then of the bias.
std::vector<float> expected(int64_t rows, const std::vector<int> &grad, const std::vector<int> &x,
                            float before)
{
    std::vector<float> all(static_cast<size_t>(kOut * kIn + kOut), 0);
    for (int64_t i = 0; i < kOut * kIn; ++i) all[static_cast<size_t>(i)] = before;
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t out = 0; out < kOut; ++out) {
            const auto g = static_cast<float>(grad[static_cast<size_t>(row * kOut + out)]);
            for (int64_t in = 0; in < kIn; ++in)
                all[static_cast<size_t>(out * kIn + in)] +=
                    g * static_cast<float>(x[static_cast<size_t>(row * kIn + in)]);
            all[static_cast<size_t>(kOut * kIn + out)] += g;
        }
    return all;
}

std::vector<int> transposed(const std::vector<int> &matrix, int64_t rows, int64_t columns)
{
    std::vector<int> all;
    for (int64_t column = 0; column < columns; ++column)
        for (int64_t row = 0; row < rows; ++row)
            all.push_back(matrix[static_cast<size_t>(row * columns + column)]);
    return all;
}

}  // namespace

// Checks gradients of float32 from factors of T, which may be halves.
template <class T>
void ProductGradients::check(int64_t rows, const Way &way)
{
    SCOPED_TRACE(testing::Message() << rows << " rows, adds " << way.adds << ", bias "
                                    << way.with_bias << ", transposed " << way.transposed);
    const std::vector<int> grad = small_numbers(rows * kOut, 1), x = small_numbers(rows * kIn, 2);
    const std::vector<float> want = expected(rows, grad, x, way.adds ? 100 : 0);
    float *weight = upload(std::vector<float>(kOut * kIn, 100)),
          *bias = upload(std::vector<float>(kOut, 100));
    const T *g = upload(converted<T>(way.transposed ? transposed(grad, rows, kOut) : grad));
    const T *of_x = upload(converted<T>(way.transposed ? transposed(x, rows, kIn) : x));
    Record record(YOKE_OP__PRODUCT_GRADIENTS, device_);
    record.change(weight, {kOut, kIn});
    if (way.with_bias) record.change(bias, {kOut});
    if (way.transposed)
        record.in(g, {rows, kOut}, {{1, rows}}).in(of_x, {rows, kIn}, {{1, rows}});
    else
        record.in(g, {rows, kOut}).in(of_x, {rows, kIn});
    record.param(int64_t(way.adds), YOKE_ARG_BOOL);
    ASSERT_DONE(record.run(*table_));
    std::vector<float> got = download(weight, kOut * kIn);
    const std::vector<float> sums = download(bias, kOut);
    got.insert(got.end(), sums.begin(), sums.end());
    for (size_t i = 0; i < got.size(); ++i)
        EXPECT_EQ(got[i], i < kOut * kIn || way.with_bias ? want[i] : 100) << i;
}

TEST_P(ProductGradients, OfFloat32AndOfHalvesAreWrittenOrAdded)
{
    for (const int64_t rows : {1, 3, 64})
        for (const bool adds : {false, true})
            for (const bool with_bias : {false, true})
                for (const bool transposed : {false, true}) {
                    check<float>(rows, {adds, with_bias, transposed});
                    check<uint16_t>(rows, {adds, with_bias, transposed});
                }
}

TEST_P(ProductGradients, WithoutRowsAreZeroOrStay)
{
    for (const bool adds : {false, true}) {
        check<float>(0, {adds, true, false});
        check<uint16_t>(0, {adds, true, false});
    }
}

TEST_P(ProductGradients, CastsOfManyTensorsAreThoseOfEach)
{
    constexpr int64_t kSizes[] = {1, 7, 64, 5000};
    Record together(YOKE_OP__CAST_ALL, device_);
    std::vector<std::pair<uint16_t *, uint16_t *>> made;
    std::vector<const float *> from;
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (const int64_t size : kSizes) {
        std::vector<float> values(static_cast<size_t>(size));
        for (float &each : values) each = normal(random);
        from.push_back(upload(values));
        const std::vector<uint16_t> empty(values.size());
        made.push_back({upload(empty), upload(empty)});
        together.change(made.back().first, {size});
    }
    for (size_t i = 0; i < made.size(); ++i) together.in(from[i], {kSizes[i]});
    ASSERT_DONE(together.run(*table_));
    for (size_t i = 0; i < made.size(); ++i) {
        const auto count = static_cast<size_t>(kSizes[i]);
        ASSERT_DONE(Record(YOKE_OP_CAST, device_)
                        .in(from[i], {kSizes[i]})
                        .out(made[i].second, {kSizes[i]})
                        .param(int64_t(YOKE_F16))
                        .run(*table_));
        EXPECT_EQ(download(made[i].first, count), download(made[i].second, count)) << i;
    }
}

}  // namespace yoke::test
