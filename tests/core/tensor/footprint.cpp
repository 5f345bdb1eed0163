// Views on common bytes: core/tensor/footprint.cpp.
#include "core/tensor/footprint.h"
#include "core/select/select.h"
#include "tests/core/tensor/draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace yoke {
namespace {

using test::draw;
using test::Random;

struct View {
    std::vector<int64_t> shape, strides;
    int64_t offset = 0;

    Tensor of(const Tensor &base) const { return make_view(*base, shape, strides.data(), offset); }
    std::string text() const
    {
        return to_string(shape) + " by " + to_string(strides) + " from " + std::to_string(offset);
    }
};

// Returns the offset of every element.
std::set<int64_t> elements(const View &view)
{
    std::set<int64_t> found{view.offset};
    for (size_t d = 0; d < view.shape.size(); ++d) {
        std::set<int64_t> next;
        for (const int64_t each : found)
            for (int64_t i = 0; i < view.shape[d]; ++i) next.insert(each + i * view.strides[d]);
        found = std::move(next);
    }
    return found;
}

bool have_one_in_common(const View &a, const View &b)
{
    const std::set<int64_t> ours = elements(a), theirs = elements(b);
    return std::ranges::any_of(ours, [&](int64_t each) { return theirs.contains(each); });
}

std::vector<int64_t> random_shape(Random &random)
{
    std::vector<int64_t> shape(static_cast<size_t>(draw(random, 1, 4)));
    for (int64_t &size : shape) size = draw(random, 1, 6);
    return shape;
}

Tensor tensor_of(const std::vector<int64_t> &shape, yoke_dtype dtype = YOKE_F32)
{
    return make_tensor(open_device("cpu"), dtype, shape, "test");
}

// Returns a random slice of a dense tensor, some reversed or expanded, with its axes in any order. All axes have
// steps of `steps`.
View random_slice(Random &random, const yoke_tensor &base, const std::vector<int64_t> &steps)
{
    View view;
    for (size_t d = 0; d < base.shape().size(); ++d) {
        const int64_t length = base.shape_[d], step = steps[d];
        const int64_t first = draw(random, 0, length - 1);
        const int64_t most = (length - 1 - first) / step + 1;
        const int64_t size = draw(random, 0, 2) ? draw(random, 1, most) : most;
        const bool is_backwards = draw(random, 0, 4) == 0;
        const int64_t stride = base.strides_[d] * step;
        view.offset += first * base.strides_[d] + (is_backwards ? (size - 1) * stride : 0);
        view.shape.push_back(size);
        view.strides.push_back(is_backwards ? -stride : stride);
        if (draw(random, 0, 9) == 0) view.shape.push_back(3), view.strides.push_back(0);
    }
    for (size_t i = view.shape.size(); i-- > 1;) {
        const auto other = static_cast<size_t>(draw(random, 0, static_cast<int64_t>(i)));
        std::swap(view.shape[i], view.shape[other]);
        std::swap(view.strides[i], view.strides[other]);
    }
    return view;
}

// The answer is the truth, whichever of the two is asked; many pairs meet, and many do not.
void expect_exact(const std::function<int64_t(Random &)> &step, yoke_dtype dtype)
{
    Random random(20261126);
    int met = 0, apart = 0;
    for (int i = 0; i < 4000; ++i) {
        const Tensor base = tensor_of(random_shape(random), dtype);
        std::vector<int64_t> steps;
        for (int d = 0; d < base->ndim; ++d) steps.push_back(step(random));
        const View a = random_slice(random, *base, steps), b = random_slice(random, *base, steps);
        const bool truth = have_one_in_common(a, b);
        (truth ? met : apart) += 1;
        ASSERT_EQ(shares_memory(*a.of(base), *b.of(base)), truth) << a.text() << ", " << b.text();
        ASSERT_EQ(shares_memory(*b.of(base), *a.of(base)), truth) << a.text() << ", " << b.text();
    }
    EXPECT_GT(std::min(met, apart), 500);
}

TEST(Footprint, IsExactForSlicesOfADenseTensor)
{
    for (const yoke_dtype dtype : {YOKE_F32, YOKE_U8})
        expect_exact([](Random &) { return int64_t{1}; }, dtype);
}

TEST(Footprint, IsExactForSlicesOfTheSameSteps)
{
    expect_exact([](Random &random) { return draw(random, 1, 3); }, YOKE_F64);
}

// Tests any strides, also views whose own elements overlap.
TEST(Footprint, NeverMissesBytesInCommon)
{
    Random random(7);
    int met = 0, told_apart = 0;
    for (int i = 0; i < 20000; ++i) {
        const Tensor base = tensor_of({400});
        const auto any = [&] {
            View view;
            view.offset = draw(random, 0, 40);
            for (int64_t d = draw(random, 0, 3); d > 0; --d) {
                view.shape.push_back(draw(random, 1, 5));
                view.strides.push_back(draw(random, 0, 24));
            }
            return view;
        };
        const View a = any(), b = any();
        const bool is_found = shares_memory(*a.of(base), *b.of(base));
        if (have_one_in_common(a, b)) {
            ++met;
            ASSERT_TRUE(is_found) << a.text() << ", " << b.text();
        } else if (!is_found) {
            ++told_apart;
        }
    }
    EXPECT_GT(std::min(met, told_apart), 500);
}

TEST(Footprint, ViewsOfUnlikeShapesAreComparedInTheirCommonGrid)
{
    const Tensor base = tensor_of({4, 6, 8});
    const View planes{{4, 16}, {48, 1}, 0};         // [:, :2], last axes joined
    const View column{{4, 3}, {48, 8}, 3 * 8 + 1};  // [:, 3:, 1]
    const View crossing{{4, 3}, {48, 8}, 8 + 1};    // [:, 1:4, 1]
    const View flat{{24}, {8}, 5};                  // [:, :, 5], as a single axis
    EXPECT_FALSE(shares_memory(*planes.of(base), *column.of(base)));
    EXPECT_TRUE(shares_memory(*planes.of(base), *crossing.of(base)));
    EXPECT_FALSE(shares_memory(*column.of(base), *flat.of(base)));
    EXPECT_TRUE(shares_memory(*planes.of(base), *flat.of(base)));
    EXPECT_TRUE(shares_memory(*base, *flat.of(base)));
}

TEST(Footprint, OfNoElementsMeetsNothing)
{
    const Tensor base = tensor_of({4, 6});
    const View none{{4, 0}, {6, 2}, 0}, column{{4}, {6}, 0};
    EXPECT_FALSE(shares_memory(*none.of(base), *base));
    EXPECT_FALSE(shares_memory(*column.of(base), *none.of(base)));
    EXPECT_FALSE(Footprint().meets(Footprint(*base)));
    EXPECT_FALSE(shares_memory(*column.of(base), *column.of(tensor_of({4, 6}))));
}

}  // namespace
}  // namespace yoke
