// Tensors, views, byte ranges and the host's memory: core/tensor/tensor.cpp and copy.cpp.
#include "core/select/select.h"
#include "core/tensor/tensor.h"
#include "tests/core/cpu.h"
#include "tests/core/expect_error.h"
#include "tests/core/tensor/draw.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace yoke {
namespace {

using test::cpu;
using test::expect_error;

Tensor iota(std::vector<int64_t> shape)
{
    Tensor t = make_tensor(cpu(), YOKE_I32, shape, "test");
    std::iota(reinterpret_cast<int32_t *>(t->data), reinterpret_cast<int32_t *>(t->data) + t->numel,
              0);
    return t;
}

// Returns the element offsets of a view in row-major order, an index at a time: the oracle for all tests below.
std::vector<int64_t> offsets(IntList shape, const int64_t *strides)
{
    std::vector<int64_t> result, index(shape.size(), 0);
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return result;
    for (;;) {
        int64_t offset = 0;
        for (size_t i = 0; i < shape.size(); ++i) offset += index[i] * strides[i];
        result.push_back(offset);
        size_t axis = shape.size();
        while (axis > 0 && ++index[axis - 1] == shape[axis - 1]) index[--axis] = 0;
        if (axis == 0) return result;
    }
}

// Reads the strides off the offsets. Strides exist for every axis of `shape` exactly if they reproduce the offsets.
bool oracle_view(const yoke_tensor &x, IntList shape, int64_t *strides)
{
    const std::vector<int64_t> wanted = offsets(x.shape(), x.strides_);
    int64_t step = 1;
    for (size_t i = shape.size(); i-- > 0; step *= shape[i])
        strides[i] = shape[i] > 1 ? wanted[static_cast<size_t>(step)] - wanted[0] : 0;
    return offsets(shape, strides) == wanted;
}

using test::draw;
using test::Random;

// A view of random shape: permuted, sliced with steps of either sign, with axes of size 1 and
// broadcast axes.
Tensor random_view(Random &random)
{
    const auto ndim = static_cast<size_t>(draw(random, 0, 4));
    std::vector<int64_t> shape(ndim), strides(ndim), order(ndim);
    for (int64_t &size : shape) size = draw(random, 1, 5);
    Tensor base = iota(shape);
    std::iota(order.begin(), order.end(), 0);
    if (draw(random, 0, 1)) std::shuffle(order.begin(), order.end(), random);
    int64_t offset = 0;
    std::vector<int64_t> sizes(ndim);
    for (size_t i = 0; i < ndim; ++i) {
        const auto axis = static_cast<size_t>(order[i]);
        const int64_t size = shape[axis], step = draw(random, 0, 3) ? 1 : draw(random, 1, 2);
        sizes[i] =
            draw(random, 0, 3) ? (size - 1) / step + 1 : draw(random, 1, (size - 1) / step + 1);
        strides[i] = base->strides_[axis] * step;
        if (draw(random, 0, 5) == 0) {
            offset += strides[i] * (sizes[i] - 1);
            strides[i] = -strides[i];
        } else if (draw(random, 0, 9) == 0) {
            strides[i] = 0;
        }
    }
    return make_view(*base, sizes, strides.data(), offset);
}

// A random way to cut `numel` elements into axes.
std::vector<int64_t> random_factors(Random &random, int64_t numel)
{
    std::vector<int64_t> shape;
    while (numel > 1) {
        int64_t factor = draw(random, 2, numel);
        while (numel % factor) ++factor;
        shape.push_back(factor);
        numel /= factor;
    }
    for (int64_t ones = draw(random, 0, 2); ones > 0; --ones)
        shape.insert(shape.begin() + draw(random, 0, static_cast<int64_t>(shape.size())), 1);
    std::shuffle(shape.begin(), shape.end(), random);
    return shape;
}

TEST(TensorViews, ViewStridesAgreeWithTheBruteForceOracle)
{
    Random random(20240607);
    int possible = 0, impossible = 0, strided = 0;
    for (int round = 0; round < 20000; ++round) {
        Tensor x = random_view(random);
        const std::vector<int64_t> shape = random_factors(random, x->numel);
        int64_t got[YOKE_MAX_NDIM], expected[YOKE_MAX_NDIM];
        const bool expected_view = oracle_view(*x, shape, expected);
        const bool got_view = view_strides(*x, shape, got);
        ASSERT_EQ(got_view, expected_view)
            << to_string(x->shape()) << to_string(x->strides()) << to_string(shape);
        (got_view ? possible : impossible)++;
        if (!got_view) continue;
        strided += !x->contiguous;
        ASSERT_EQ(offsets(shape, got), offsets(x->shape(), x->strides_))
            << to_string(x->shape()) << to_string(x->strides()) << to_string(shape);
    }
    // The random views have to exercise both answers.
    EXPECT_GT(possible, 2000);
    EXPECT_GT(impossible, 2000);
    EXPECT_GT(strided, 500);
}

TEST(TensorViews, ByteRangeIsExactlyWhatTheElementsTouch)
{
    Random random(7);
    for (int round = 0; round < 5000; ++round) {
        Tensor x = random_view(random);
        const std::vector<int64_t> touched = offsets(x->shape(), x->strides_);
        const auto [low, high] = std::minmax_element(touched.begin(), touched.end());
        const ByteRange range = byte_range(*x);
        ASSERT_EQ(range.begin, x->data + *low * 4);
        ASSERT_EQ(range.bytes, static_cast<uint64_t>(*high - *low + 1) * 4);
        ASSERT_GE(range.begin, static_cast<const char *>(x->storage->data));
        ASSERT_LE(range.begin + range.bytes,
                  static_cast<const char *>(x->storage->data) + x->storage->bytes);
    }
}

TEST(TensorViews, ContiguousMeansRowMajorWithoutGaps)
{
    Random random(11);
    for (int round = 0; round < 5000; ++round) {
        Tensor x = random_view(random);
        const std::vector<int64_t> touched = offsets(x->shape(), x->strides_);
        bool dense = true;
        for (size_t i = 0; i < touched.size(); ++i) dense &= touched[i] == static_cast<int64_t>(i);
        ASSERT_EQ(x->contiguous, dense) << to_string(x->shape()) << to_string(x->strides());
    }
}

TEST(TensorViews, AReversedViewReadsBackwards)
{
    Tensor x = iota({5});
    const int64_t stride = -1;
    Tensor reversed = make_view(*x, x->shape(), &stride, 4);
    EXPECT_FALSE(reversed->contiguous);
    const auto *last = reinterpret_cast<const int32_t *>(reversed->data);
    EXPECT_EQ(last[0], 4);
    EXPECT_EQ(last[4 * reversed->strides_[0]], 0);
    EXPECT_EQ(byte_range(*reversed).begin, x->data);
    EXPECT_EQ(byte_range(*reversed).bytes, x->nbytes());
}

TEST(TensorViews, AViewKeepsTheStorageAliveAndSharesItsVersion)
{
    const int64_t before = live_tensor_count();
    Tensor x = iota({3, 4});
    Tensor row = make_view(*x, IntList(x->shape_ + 1, 1), x->strides_ + 1, 8);
    EXPECT_TRUE(shares_memory(*x, *row));
    x->storage->version.fetch_add(1);
    EXPECT_EQ(row->storage->version.load(), 1u);
    x = nullptr;
    EXPECT_EQ(live_tensor_count(), before + 1);
    EXPECT_EQ(reinterpret_cast<const int32_t *>(row->data)[3], 11);
    row = nullptr;
    EXPECT_EQ(live_tensor_count(), before);
}

TEST(TensorViews, AnAliasHasTheLayoutButNoGradient)
{
    Tensor x = iota({2, 3});
    x->node = Ref<RefCounted>::share(x->storage.get());  // any counted object serves as a node here
    Tensor y = alias(*x);
    EXPECT_TRUE(x->requires_grad());
    EXPECT_FALSE(y->requires_grad());
    EXPECT_EQ(y->data, x->data);
    EXPECT_EQ(to_string(y->shape()), "[2, 3]");
    EXPECT_EQ(to_string(y->strides()), "[3, 1]");
}

TEST(TensorViews, NeighboursAndEmptyViewsShareNoMemory)
{
    Tensor x = iota({8});
    const int64_t four = 4, none = 0, one = 1;
    Tensor low = make_view(*x, {&four, 1}, &one, 0), high = make_view(*x, {&four, 1}, &one, 4);
    Tensor across = make_view(*x, {&four, 1}, &one, 3), empty = make_view(*x, {&none, 1}, &one, 2);
    EXPECT_FALSE(shares_memory(*low, *high));
    EXPECT_TRUE(shares_memory(*low, *across));
    EXPECT_TRUE(shares_memory(*across, *high));
    EXPECT_FALSE(shares_memory(*x, *empty));
    EXPECT_FALSE(shares_memory(*x, *iota({8})));
}

TEST(TensorViews, SizesOfZeroMakeEmptyTensorsWithoutMemory)
{
    Tensor x = make_tensor(cpu(), YOKE_F64, Dims{3, 0, 5}, "test");
    EXPECT_EQ(x->numel, 0);
    EXPECT_EQ(x->nbytes(), 0u);
    EXPECT_TRUE(x->contiguous);
    EXPECT_EQ(x->data, nullptr);
    EXPECT_EQ(byte_range(*x).bytes, 0u);
    EXPECT_EQ(describe(*x), "[3, 0, 5] float64 on cpu");
    int64_t strides[YOKE_MAX_NDIM];
    EXPECT_TRUE(view_strides(*x, Dims{0}, strides));
    copy_to_host(*x, nullptr, 0, "test");
    copy_from_host(*x, nullptr, 0, "test");
}

TEST(TensorViews, ANullDimensionalTensorHoldsOneElement)
{
    Tensor x = make_tensor(cpu(), YOKE_BF16, {}, "test");
    EXPECT_EQ(x->numel, 1);
    EXPECT_EQ(x->nbytes(), 2u);
    EXPECT_EQ(describe(*x), "[] bfloat16 on cpu");
}

TEST(TensorViews, ImpossibleShapesAreRefusedByName)
{
    expect_error(YOKE_E_VALUE, {"yoke_zeros", "[2, -3]", "each size must be 0 or more"}, [] {
        make_tensor(cpu(), YOKE_F32, Dims{2, -3}, "yoke_zeros");
    });
    const int64_t big = int64_t{1} << 32;
    expect_error(YOKE_E_VALUE, {"yoke_zeros", "4294967296"}, [&] {
        make_tensor(cpu(), YOKE_F32, Dims{big, big}, "yoke_zeros");
    });
    // 2^61 elements are countable, 2^61 doubles are not addressable.
    expect_error(YOKE_E_VALUE, {"yoke_zeros"},
                 [&] { make_tensor(cpu(), YOKE_F64, Dims{int64_t{1} << 61}, "yoke_zeros"); });
    const std::vector<int64_t> many(YOKE_MAX_NDIM + 1, 1);
    expect_error(YOKE_E_VALUE, {"17", "16"},
                 [&] { make_tensor(cpu(), YOKE_F32, many, "yoke_zeros"); });
}

TEST(TensorViews, MoreThan2To31ElementsAreCountedIn64Bits)
{
    // Broadcast axes make the count without the memory.
    Tensor x = iota({1});
    const std::vector<int64_t> shape = {int64_t{1} << 20, int64_t{1} << 20}, strides = {0, 0};
    Tensor y = make_view(*x, shape, strides.data(), 0);
    EXPECT_EQ(y->numel, int64_t{1} << 40);
    EXPECT_EQ(y->nbytes(), uint64_t{1} << 42);
    EXPECT_EQ(byte_range(*y).bytes, 4u);
}

TEST(TensorViews, LiveCountFollowsEveryThread)
{
    const int64_t before = live_tensor_count();
    std::vector<Tensor> kept(8);
    std::vector<std::thread> threads;
    for (Tensor &slot : kept)
        threads.emplace_back([&slot] {
            for (int i = 0; i < 500; ++i) slot = iota({3});
        });
    for (std::thread &thread : threads) thread.join();
    EXPECT_EQ(live_tensor_count(), before + 8);
    kept.clear();  // freed by another thread than the makers
    EXPECT_EQ(live_tensor_count(), before);
}

}  // namespace
}  // namespace yoke
