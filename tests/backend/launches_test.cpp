// Launches straight through the kernel table, with records made by hand.
#include "launch.h"

#include <cmath>
#include <limits>
#include <thread>

namespace yoke::test {

class Launches : public Contract {
protected:
    void SetUp() override
    {
        Contract::SetUp();
        if (device_ && !table_->kernels[YOKE_OP_ADD]) GTEST_SKIP() << "this backend has no kernels";
    }
    Record record(int32_t op) { return Record(op, device_); }
    template <class T>
    T *room(size_t count, T value)
    {
        return upload(std::vector<T>(count, value));
    }
};
YOKE_ON_EVERY_BACKEND(Launches);

const char *const kOpNames[] = {
#define NAME(op) #op,
    YOKE_FOR_EACH_OP(NAME, NAME)
#undef NAME
};

TEST_P(Launches, TheTableHasAKernelWhereAnOpCanHaveOneAndNoneElsewhere)
{
    static constexpr bool kHasKernel[] = {
#define YES(op) true,
#define NO(op) false,
        YOKE_FOR_EACH_OP(YES, NO)
#undef YES
#undef NO
    };
    ASSERT_EQ(table_->kernel_count, YOKE_OP_COUNT);
    EXPECT_EQ(table_->op_table_hash, YOKE_OP_TABLE_HASH);
    for (int op = 0; op < YOKE_OP_COUNT; ++op) {
        if (!kHasKernel[op]) {
            EXPECT_EQ(table_->kernels[op], nullptr) << kOpNames[op];
        } else if (GetParam().complete) {
            EXPECT_NE(table_->kernels[op], nullptr) << kOpNames[op];
        }
    }
}

TEST_P(Launches, AddBroadcastsByStridesOfZero)
{
    const float *x = upload(ramp<float>(6)), *y = upload(std::vector<float>{10, 20, 30});
    float *out = room<float>(6, -1);
    ASSERT_DONE(
        record(YOKE_OP_ADD).in(x, {2, 3}).in(y, {2, 3}, {{0, 1}}).out(out, {2, 3}).run(*table_));
    EXPECT_EQ(download(out, 6), (std::vector<float>{10, 21, 32, 13, 24, 35}));
}

TEST_P(Launches, AddTakesAScalarOnEitherSide)
{
    const double *x = upload(ramp<double>(4));
    double *out = room<double>(4, -1);
    ASSERT_DONE(record(YOKE_OP_SUB).in(x, {4}).scalar(0.5).out(out, {4}).run(*table_));
    EXPECT_EQ(download(out, 4), (std::vector<double>{-0.5, 0.5, 1.5, 2.5}));
    ASSERT_DONE(record(YOKE_OP_SUB).scalar(0.5).in(x, {4}).out(out, {4}).run(*table_));
    EXPECT_EQ(download(out, 4), (std::vector<double>{0.5, -0.5, -1.5, -2.5}));
}

TEST_P(Launches, NegativeAndTransposedStridesAreFollowedOnBothSides)
{
    const float *x = upload(ramp<float>(6));  // [[0 1 2] [3 4 5]]
    float *out = room<float>(12, -1);
    // x is reversed along both axes, and written into every second place of a column-major result.
    ASSERT_DONE(
        record(YOKE_OP_NEG).in(x + 5, {2, 3}, {{-3, -1}}).out(out, {2, 3}, {{2, 4}}).run(*table_));
    EXPECT_EQ(download(out, 12),
              (std::vector<float>{-5, -1, -2, -1, -4, -1, -1, -1, -3, -1, -0.0f, -1}));
}

TEST_P(Launches, NothingOutsideTheResultIsWritten)
{
    for (const size_t count : {1u, 7u, 31u, 64u, 1000u, 70'001u}) {
        const float *x = upload(ramp<float>(count, 1));
        float *out = room<float>(count + 2, -9);
        const auto n = static_cast<int64_t>(count);
        ASSERT_DONE(record(YOKE_OP_RELU).in(x, {n}).out(out + 1, {n}).run(*table_));
        const std::vector<float> got = download(out, count + 2);
        EXPECT_EQ(got.front(), -9);
        EXPECT_EQ(got.back(), -9);
        EXPECT_EQ(std::vector<float>(got.begin() + 1, got.end() - 1), ramp<float>(count, 1));
    }
}

TEST_P(Launches, ALaunchOnNothingTouchesNothing)
{
    float *out = room<float>(1, 5);
    ASSERT_DONE(record(YOKE_OP_ADD).in(out, {0, 3}).in(out, {0, 3}).out(out, {0, 3}).run(*table_));
    ASSERT_DONE(record(YOKE_OP_EXP).in(out, {2, 0}).out(out, {2, 0}).run(*table_));
    ASSERT_DONE(record(YOKE_OP_SOFTMAX)
                    .in(out, {0, 3})
                    .out(out, {0, 3})
                    .param(int64_t{1})
                    .param(int64_t{0})
                    .run(*table_));
    ASSERT_DONE(
        record(YOKE_OP_MATMUL).in(out, {0, 3}).in(out, {3, 0}).out(out, {0, 0}).run(*table_));
    EXPECT_EQ(download(out, 1)[0], 5);
}

TEST_P(Launches, TheSumOfNothingIsZeroAndItsMeanIsNotANumber)
{
    double *out = room<double>(3, 5), *none = room<double>(1, 5);
    ASSERT_DONE(record(YOKE_OP_SUM)
                    .in(none, {0, 3})
                    .out(out, {3})
                    .axes({0})
                    .param(int64_t{0}, YOKE_ARG_BOOL)
                    .param(int64_t{0})
                    .run(*table_));
    EXPECT_EQ(download(out, 3), (std::vector<double>{0, 0, 0}));
    ASSERT_DONE(record(YOKE_OP_MEAN)
                    .in(none, {0, 3})
                    .out(out, {3})
                    .axes({0})
                    .param(int64_t{0}, YOKE_ARG_BOOL)
                    .param(int64_t{0})
                    .run(*table_));
    for (const double value : download(out, 3)) EXPECT_TRUE(std::isnan(value));
}

TEST_P(Launches, SumReducesAnyAxesOfAnyStrides)
{
    const int32_t *x = upload(ramp<int32_t>(24));  // [2, 3, 4]
    int64_t *out = room<int64_t>(3, -1);
    ASSERT_DONE(record(YOKE_OP_SUM)
                    .in(x, {2, 3, 4})
                    .out(out, {3})
                    .axes({0, 2})
                    .param(int64_t{0}, YOKE_ARG_BOOL)
                    .param(int64_t{0})
                    .run(*table_));
    EXPECT_EQ(download(out, 3), (std::vector<int64_t>{60, 92, 124}));
    // An equal view as [4, 3, 2]: axes 0 and 2 are axes 2 and 0 of the view before.
    ASSERT_DONE(record(YOKE_OP_SUM)
                    .in(x, {4, 3, 2}, {{1, 4, 12}})
                    .out(out, {1, 3, 1})
                    .axes({0, 2})
                    .param(int64_t{1}, YOKE_ARG_BOOL)
                    .param(int64_t{0})
                    .run(*table_));
    EXPECT_EQ(download(out, 3), (std::vector<int64_t>{60, 92, 124}));
}

TEST_P(Launches, MatmulMultipliesTransposedBatchedAndPlainMatrices)
{
    const float *x = upload(std::vector<float>{1, 2, 3, 4, 5, 6}),
                *y = upload(std::vector<float>{1, 0, 2, 0, 1, 3});
    float *out = room<float>(8, -1);
    // [2, 3] by the transpose of [2, 3].
    ASSERT_DONE(
        record(YOKE_OP_MATMUL).in(x, {2, 3}).in(y, {3, 2}, {{1, 3}}).out(out, {2, 2}).run(*table_));
    EXPECT_EQ(download(out, 4), (std::vector<float>{7, 11, 16, 23}));
    // A batch of two rows against one shared matrix.
    ASSERT_DONE(
        record(YOKE_OP_MATMUL).in(x, {2, 1, 3}).in(y, {3, 2}).out(out, {2, 1, 2}).run(*table_));
    EXPECT_EQ(download(out, 4), (std::vector<float>{8, 9, 20, 18}));
}

TEST_P(Launches, AProductOverNothingIsZero)
{
    float *out = room<float>(6, -1);
    ASSERT_DONE(
        record(YOKE_OP_MATMUL).in(out, {2, 0}).in(out, {0, 3}).out(out, {2, 3}).run(*table_));
    EXPECT_EQ(download(out, 6), std::vector<float>(6, 0));
}

TEST_P(Launches, LinearAddsItsBiasOrGoesWithout)
{
    const float *x = upload(std::vector<float>{1, 2}),
                *w = upload(std::vector<float>{1, 0, 0, 1, 1, 1});
    const float *bias = upload(std::vector<float>{10, 20, 30});
    float *out = room<float>(3, -1);
    ASSERT_DONE(record(YOKE_OP__LINEAR)
                    .in(x, {1, 2})
                    .in(w, {3, 2})
                    .in(bias, {3})
                    .out(out, {1, 3})
                    .run(*table_));
    EXPECT_EQ(download(out, 3), (std::vector<float>{11, 22, 33}));
    ASSERT_DONE(
        record(YOKE_OP__LINEAR).in(x, {1, 2}).in(w, {3, 2}).absent().out(out, {1, 3}).run(*table_));
    EXPECT_EQ(download(out, 3), (std::vector<float>{1, 2, 3}));
}

TEST_P(Launches, CatTakesAListLaidOutInPlace)
{
    const int64_t *x = upload(ramp<int64_t>(4)), *y = upload(ramp<int64_t>(2, 10));
    int64_t *out = room<int64_t>(6, -1);
    ASSERT_DONE(record(YOKE_OP_CAT)
                    .in(x, {2, 2})
                    .in(y, {2, 1})
                    .in(x, {2, 0})
                    .out(out, {2, 3})
                    .param(int64_t{1})
                    .run(*table_));
    EXPECT_EQ(download(out, 6), (std::vector<int64_t>{0, 1, 10, 2, 3, 11}));
}

TEST_P(Launches, CopyCastsOnItsWayAndFillSetsEveryElement)
{
    const double *x = upload(std::vector<double>{1.9, -1.9, 300, 0});
    int32_t *out = room<int32_t>(8, -7);
    ASSERT_DONE(record(YOKE_OP_COPY_).change(out, {4}, {{2}}).in(x, {4}).run(*table_));
    EXPECT_EQ(download(out, 8), (std::vector<int32_t>{1, -7, -1, -7, 300, -7, 0, -7}));
    ASSERT_DONE(record(YOKE_OP_FILL_).change(out + 1, {4}, {{2}}).param(int64_t{42}).run(*table_));
    EXPECT_EQ(download(out, 8), (std::vector<int32_t>{1, 42, -1, 42, 300, 42, 0, 42}));
}

TEST_P(Launches, AnIndexThatIsNoClassFailsAndIsNamed)
{
    const float *x = upload(ramp<float>(6));
    const int64_t *target = upload(std::vector<int64_t>{0, 3});
    float *loss = room<float>(1, 0), *norms = room<float>(4, 0), *used = room<float>(1, 0);
    Record call = record(YOKE_OP__CROSS_ENTROPY);
    call.in(x, {2, 3}).in(target, {2}).out(loss, {}).out(norms, {2, 2}).out(used, {});
    call.text("mean").param(int64_t{-100}).param(0.0);
    yoke_status status = call.run(*table_);
    if (status == YOKE_OK)
        status = table_->device_synchronize(device_);  // a device reports errors later
    expect_failure(YOKE_E_INDEX, status, "cross_entropy");
}

// An op's in-place form makes such launches.
TEST_P(Launches, AResultMayLieInTheMemoryOfItsArgumentWhateverTheStrides)
{
    float *x = upload(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
    const float *y = upload(std::vector<float>{10, 20});
    ASSERT_DONE(record(YOKE_OP_MUL)
                    .in(x, {2, 2}, {{1, 4}})
                    .in(y, {2})
                    .out(x, {2, 2}, {{1, 4}})
                    .run(*table_));
    EXPECT_EQ(download(x, 8), (std::vector<float>{10, 20, 3, 4, 100, 120, 7, 8}));
    ASSERT_DONE(record(YOKE_OP_NEG).in(x + 7, {8}, {{-1}}).out(x + 7, {8}, {{-1}}).run(*table_));
    EXPECT_EQ(download(x, 8), (std::vector<float>{-10, -20, -3, -4, -100, -120, -7, -8}));
}

TEST_P(Launches, LaunchesOnOneStreamHappenInOrder)
{
    constexpr int64_t kCount = 100'000;
    float *x = room<float>(kCount, 0);
    for (int i = 0; i < 50; ++i)
        ASSERT_DONE(record(YOKE_OP_ADD).in(x, {kCount}).scalar(1.0f).out(x, {kCount}).run(*table_));
    EXPECT_EQ(download(x, kCount), std::vector<float>(kCount, 50));
}

TEST_P(Launches, ThreadsLaunchSideBySideAndGetTheirOwnResults)
{
    const auto work = [this](int number) {
        constexpr int64_t kCount = 80'000;  // enough for a team
        std::vector<float> host(kCount, static_cast<float>(number));
        void *memory = nullptr;
        const uint64_t bytes = kCount * sizeof(float);
        ASSERT_DONE(table_->alloc(device_, bytes, &memory));
        auto *x = static_cast<float *>(memory);
        ASSERT_DONE(
            table_->copy(device_, x, host.data(), bytes, YOKE_COPY_HOST_TO_DEVICE, nullptr));
        for (int round = 0; round < 30; ++round)
            ASSERT_DONE(Record(YOKE_OP_ADD, device_)
                            .in(x, {kCount})
                            .scalar(2.0f)
                            .out(x, {kCount})
                            .run(*table_));
        ASSERT_DONE(
            table_->copy(device_, host.data(), x, bytes, YOKE_COPY_DEVICE_TO_HOST, nullptr));
        ASSERT_DONE(table_->device_synchronize(device_));
        EXPECT_EQ(host, std::vector<float>(kCount, static_cast<float>(number + 60)));
        EXPECT_DONE(table_->free(device_, memory, bytes));
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(work, i);
    for (std::thread &thread : threads) thread.join();
}

TEST_P(Launches, RandomNumbersDependOnSeedAndOffsetAlone)
{
    constexpr int64_t kCount = 50'001;
    float *whole = room<float>(kCount, -1), *again = room<float>(kCount, -1),
          *part = room<float>(kCount, -1);
    const auto draw = [&](float *to, int64_t count, int64_t seed, int64_t offset) {
        return record(YOKE_OP__UNIFORM)
            .change(to, {count})
            .param(0.0)
            .param(1.0)
            .param(seed)
            .param(offset)
            .run(*table_);
    };
    ASSERT_DONE(draw(whole, kCount, 7, 0));
    ASSERT_DONE(draw(again, kCount, 7, 0));
    ASSERT_DONE(draw(part, kCount - 4000, 7, 1000));
    const std::vector<float> first = download(whole, kCount), later = download(part, kCount - 4000);
    EXPECT_EQ(download(again, kCount), first);
    EXPECT_TRUE(std::equal(later.begin(), later.end(), first.begin() + 4000))
        << "four elements to a counter";
    ASSERT_DONE(draw(again, kCount, 8, 0));
    EXPECT_NE(download(again, kCount), first);
}

// A matrix in a field of memory: beginning and strides.
struct Placed {
    int64_t begin;
    std::vector<int64_t> strides;
};

TEST_P(Launches, ADrawFollowsTheShapeWhereverItsElementsLie)
{
    constexpr int64_t kRows = 37, kColumns = 51, kField = 2 * kRows * kColumns + 1;
    const Placed places[] = {{1, {kColumns, 1}},
                             {0, {1, kRows}},
                             {1, {2 * kColumns, 2}},
                             {kRows * kColumns, {-kColumns, -1}}};
    const auto draw = [&](int op, float *to, const Placed &place) {
        float *x = to + place.begin;
        if (op == YOKE_OP__RANDINT)
            return record(op)
                .change(x, {kRows, kColumns}, place.strides)
                .param(int64_t{0})
                .param(int64_t{9})
                .param(int64_t{7})
                .param(int64_t{3})
                .run(*table_);
        if (op == YOKE_OP__DROPOUT)
            return record(op)
                .in(x, {kRows, kColumns}, place.strides)
                .out(x, {kRows, kColumns}, place.strides)
                .param(0.25)
                .param(int64_t{7})
                .param(int64_t{3})
                .run(*table_);
        return record(op)
            .change(x, {kRows, kColumns}, place.strides)
            .param(0.0)
            .param(1.0)
            .param(int64_t{7})
            .param(int64_t{3})
            .run(*table_);
    };
    for (const int op : {YOKE_OP__UNIFORM, YOKE_OP__NORMAL, YOKE_OP__RANDINT, YOKE_OP__DROPOUT}) {
        float *dense = room<float>(kField, -1);
        ASSERT_DONE(draw(op, dense, {0, {kColumns, 1}}));
        const std::vector<float> want = download(dense, kField);
        for (const Placed &place : places) {
            float *field = room<float>(kField, -1);
            ASSERT_DONE(draw(op, field, place));
            std::vector<float> expected(kField, -1), got = download(field, kField);
            for (int64_t i = 0; i < kRows * kColumns; ++i)
                expected[static_cast<size_t>(place.begin + i / kColumns * place.strides[0] +
                                             i % kColumns * place.strides[1])] =
                    want[static_cast<size_t>(i)];
            EXPECT_EQ(got, expected) << "op " << op << " from " << place.begin;
        }
    }
}

TEST_P(Launches, ADtypeThatAKernelCannotTakeIsATypeErrorNotACrash)
{
    const int64_t *x = upload(ramp<int64_t>(4));
    int64_t *out = room<int64_t>(4, 5);
    expect_failure(YOKE_E_TYPE, record(YOKE_OP_EXP).in(x, {4}).out(out, {4}).run(*table_),
                   "exp of int64");
    EXPECT_EQ(download(out, 4), std::vector<int64_t>(4, 5));
}

TEST_P(Launches, TheBuildIsDescribedInOneLine)
{
    ASSERT_NE(table_->build_info(), nullptr);
    const std::string text = table_->build_info();
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(text.find('\n'), std::string::npos);
}

}  // namespace yoke::test
