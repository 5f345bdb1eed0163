// Results of each collective, for every dtype and reduction, compared with the right results.
#include "ranks.h"

#include <cmath>
#include <cstring>

namespace yoke::test {

using Values = Collectives;
YOKE_ON_EVERY_BACKEND(Values);

namespace {

// Returns small whole numbers: sums and products of a few are exact in every dtype with such numbers.
double element(yoke_dtype dtype, int rank, int64_t i)
{
    const int64_t number = (i * 7 + rank * 3) % 5;
    if (dtype == YOKE_BOOL) return static_cast<double>((i + rank) % 3 == 0);
    return static_cast<double>(dtype == YOKE_U8 ? number % 4 : number - 2);
}

std::vector<double> elements(yoke_dtype dtype, int rank, int64_t begin, int64_t count)
{
    std::vector<double> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(element(dtype, rank, begin + i));
    return values;
}

double reduced(yoke_dtype dtype, int32_t reduction, int size, int64_t i)
{
    double result = element(dtype, 0, i);
    for (int rank = 1; rank < size; ++rank) {
        const double next = element(dtype, rank, i);
        if (reduction == YOKE_REDUCE_PROD)
            result *= next;
        else if (reduction == YOKE_REDUCE_MIN)
            result = std::min(result, next);
        else if (reduction == YOKE_REDUCE_MAX)
            result = std::max(result, next);
        else
            result += next;
    }
    if (reduction != YOKE_REDUCE_AVG) return result;
    if (dtype == YOKE_F64) return result / size;
    return static_cast<float>(result) / static_cast<float>(size);
}

std::string all_reduced(yoke_dtype dtype, int32_t reduction, int size, int64_t begin, int64_t count)
{
    std::vector<double> values;
    for (int64_t i = 0; i < count; ++i)
        values.push_back(reduced(dtype, reduction, size, begin + i));
    return encode(dtype, values);
}

bool is_defined(yoke_dtype dtype, int32_t reduction)
{
    if (reduction == YOKE_REDUCE_MIN || reduction == YOKE_REDUCE_MAX) return true;
    const bool is_integer =
        dtype == YOKE_I64 || dtype == YOKE_I32 || dtype == YOKE_I8 || dtype == YOKE_U8;
    const bool is_float =
        dtype == YOKE_F64 || dtype == YOKE_F32 || dtype == YOKE_F16 || dtype == YOKE_BF16;
    return is_float || (is_integer && reduction != YOKE_REDUCE_AVG);
}

struct Case {
    yoke_dtype dtype;
    int64_t count;
    std::string name() const
    {
        return "dtype " + std::to_string(dtype) + ", " + std::to_string(count) + " elements";
    }
    std::string own(int rank) const { return encode(dtype, elements(dtype, rank, 0, count)); }
    // So many parts of this rank, one behind the other.
    std::string parts(int rank, int size) const
    {
        return encode(dtype, elements(dtype, rank, 0, count * size));
    }
    std::string room(int parts = 1) const
    {
        return std::string(
            static_cast<size_t>(count) * bytes_of(dtype) * static_cast<size_t>(parts), '\x5a');
    }
};

void check_reductions(Rank &r, const Case &c, int32_t reduction)
{
    const std::string own = c.own(r.rank), all = c.parts(r.rank, r.size);
    const std::string expected = all_reduced(c.dtype, reduction, r.size, 0, c.count);
    std::string out = c.room(), in_place = own;
    ASSERT_DONE(
        r.run(YOKE_COMM_ALL_REDUCE, c.dtype, c.count, own.data(), out.data(), -1, reduction));
    ASSERT_EQ(out, expected) << "all_reduce";
    ASSERT_DONE(r.run(YOKE_COMM_ALL_REDUCE, c.dtype, c.count, in_place.data(), in_place.data(), -1,
                      reduction));
    ASSERT_EQ(in_place, expected) << "all_reduce in place";
    for (int root = 0; root < r.size; ++root) {
        out = c.room();
        void *to = r.rank == root ? out.data() : nullptr;
        ASSERT_DONE(r.run(YOKE_COMM_REDUCE, c.dtype, c.count, own.data(), to, root, reduction));
        ASSERT_EQ(out, r.rank == root ? expected : c.room()) << "reduce to " << root;
    }
    const std::string mine = all_reduced(c.dtype, reduction, r.size, r.rank * c.count, c.count);
    out = c.room();
    ASSERT_DONE(
        r.run(YOKE_COMM_REDUCE_SCATTER, c.dtype, c.count, all.data(), out.data(), -1, reduction));
    ASSERT_EQ(out, mine) << "reduce_scatter";
    std::string within = all;
    const uint64_t bytes = static_cast<uint64_t>(c.count) * bytes_of(c.dtype);
    char *part = within.data() + static_cast<uint64_t>(r.rank) * bytes;
    ASSERT_DONE(
        r.run(YOKE_COMM_REDUCE_SCATTER, c.dtype, c.count, within.data(), part, -1, reduction));
    ASSERT_EQ(std::string(part, bytes), mine) << "reduce_scatter into its part";
    within = all;
    ASSERT_DONE(r.run(YOKE_COMM_REDUCE_SCATTER, c.dtype, c.count, within.data(), within.data(), -1,
                      reduction));
    ASSERT_EQ(within.substr(0, bytes), mine) << "reduce_scatter in place";
}

void check_gathers(Rank &r, const Case &c)
{
    const std::string own = c.own(r.rank);
    std::string all;
    for (int rank = 0; rank < r.size; ++rank) all += c.own(rank);
    std::string out = c.room(r.size);
    ASSERT_DONE(r.run(YOKE_COMM_ALL_GATHER, c.dtype, c.count, own.data(), out.data()));
    ASSERT_EQ(out, all) << "all_gather";
    out = c.room(r.size);
    char *part = out.data() + static_cast<size_t>(r.rank) * own.size();
    memcpy(part, own.data(), own.size());
    ASSERT_DONE(r.run(YOKE_COMM_ALL_GATHER, c.dtype, c.count, part, out.data()));
    ASSERT_EQ(out, all) << "all_gather from its part";
    for (int root = 0; root < r.size; ++root) {
        out = c.room(r.size);
        const bool is_root = r.rank == root;
        ASSERT_DONE(r.run(YOKE_COMM_GATHER, c.dtype, c.count, own.data(),
                          is_root ? out.data() : nullptr, root));
        ASSERT_EQ(out, is_root ? all : c.room(r.size)) << "gather to " << root;
    }
}

void check_spreads(Rank &r, const Case &c)
{
    for (int root = 0; root < r.size; ++root) {
        std::string out = r.rank == root ? c.own(root) : c.room();
        const void *in = r.rank == root ? out.data() : nullptr;
        ASSERT_DONE(r.run(YOKE_COMM_BROADCAST, c.dtype, c.count, in, out.data(), root));
        ASSERT_EQ(out, c.own(root)) << "broadcast from " << root;
        const std::string parts = c.parts(root, r.size);
        std::string mine = c.room();
        ASSERT_DONE(r.run(YOKE_COMM_SCATTER, c.dtype, c.count,
                          r.rank == root ? parts.data() : nullptr, mine.data(), root));
        ASSERT_EQ(mine, parts.substr(static_cast<size_t>(r.rank) * mine.size(), mine.size()))
            << "scatter from " << root;
    }
}

void check_all_to_all(Rank &r, const Case &c)
{
    const std::string parts = c.parts(r.rank, r.size);
    std::string expected, out = c.room(r.size), in_place = parts;
    for (int rank = 0; rank < r.size; ++rank)
        expected += c.parts(rank, r.size)
                        .substr(static_cast<size_t>(r.rank) * c.room().size(), c.room().size());
    ASSERT_DONE(r.run(YOKE_COMM_ALL_TO_ALL, c.dtype, c.count, parts.data(), out.data()));
    ASSERT_EQ(out, expected) << "all_to_all";
    ASSERT_DONE(r.run(YOKE_COMM_ALL_TO_ALL, c.dtype, c.count, in_place.data(), in_place.data()));
    ASSERT_EQ(in_place, expected) << "all_to_all in place";
}

void check_messages(Rank &r, const Case &c)
{
    if (r.size == 1) return;
    const std::string own = c.own(r.rank);
    const int next = (r.rank + 1) % r.size, before = (r.rank + r.size - 1) % r.size;
    std::string out = c.room();
    r.engine.group_begin(r.comm);
    EXPECT_DONE(r.run(YOKE_COMM_SEND, c.dtype, c.count, own.data(), nullptr, next));
    EXPECT_DONE(r.run(YOKE_COMM_RECV, c.dtype, c.count, nullptr, out.data(), before));
    ASSERT_DONE(r.engine.group_end(r.comm));
    ASSERT_EQ(out, c.own(before)) << "send and recv in a ring";
    if (r.rank == 0) {
        ASSERT_DONE(r.run(YOKE_COMM_SEND, c.dtype, c.count, own.data(), nullptr, 1));
    } else if (r.rank == 1) {
        out = c.room();
        ASSERT_DONE(r.run(YOKE_COMM_RECV, c.dtype, c.count, nullptr, out.data(), 0));
        ASSERT_EQ(out, c.own(0)) << "send and recv";
    }
}

void check_all(Rank &r, const Case &c, bool every_reduction)
{
    SCOPED_TRACE(c.name());
    ASSERT_DONE(r.barrier());
    for (int32_t reduction = YOKE_REDUCE_SUM; reduction <= YOKE_REDUCE_AVG; ++reduction)
        if (is_defined(c.dtype, reduction) && (every_reduction || reduction == YOKE_REDUCE_SUM)) {
            SCOPED_TRACE("reduction " + std::to_string(reduction));
            check_reductions(r, c, reduction);
        }
    check_gathers(r, c);
    check_spreads(r, c);
    check_all_to_all(r, c);
    check_messages(r, c);
}

constexpr int64_t kLongCount = 110'001;  // several chunks for each of three ranks

void check_dtypes(Rank &r)
{
    for (yoke_dtype dtype : kDtypes)
        for (int64_t count : {0, 1, 7, 515}) check_all(r, {dtype, count}, true);
}

void check_long(Rank &r)
{
    check_all(r, {YOKE_F64, kLongCount}, false);
}

}  // namespace

TEST_P(Values, EveryCallOfEveryDtypeIsRight)
{
    for (int size : {1, 2, 3, 4}) run({size}, check_dtypes);
}

TEST_P(Values, EveryCallOfALongTensorIsRightInSharedMemory)
{
    for (int size : {2, 3}) run({size}, check_long);
}

TEST_P(Values, EveryCallOfALongTensorIsRightOverTcp)
{
    for (int size : {2, 3}) run({size, false}, check_long);
}

TEST_P(Values, EveryCallOfALongTensorIsRightAcrossNodes)
{
    run({4, true, {"a", "b", "a", "b"}}, check_long);
    run({4, true, {"a", "b", "b", "b"}}, check_long);
}

TEST_P(Values, WhatIsNotDefinedIsRefused)
{
    run({2}, [&](Rank &r) {
        for (yoke_dtype dtype : kDtypes)
            for (int32_t reduction = YOKE_REDUCE_SUM; reduction <= YOKE_REDUCE_AVG; ++reduction) {
                if (is_defined(dtype, reduction)) continue;
                double in = 0, out = 0;
                told() = {};
                expect_failure(YOKE_E_TYPE,
                               r.run(YOKE_COMM_ALL_REDUCE, dtype, 1, &in, &out, -1, reduction),
                               "all_reduce");
            }
        r.lie = nullptr;
    });
}

TEST_P(Values, ANumberThatIsNoneWinsAsInAmaxAndAmin)
{
    run({3}, [&](Rank &r) {
        for (yoke_dtype dtype :
             {YOKE_F64, YOKE_F32, YOKE_F16, YOKE_BF16, YOKE_F8_E4M3, YOKE_F8_E5M2})
            for (int32_t reduction : {YOKE_REDUCE_MIN, YOKE_REDUCE_MAX}) {
                std::vector<double> values = {1, 2, 3};
                values[static_cast<size_t>(r.rank)] = NAN;
                std::string data = encode(dtype, values);
                ASSERT_DONE(
                    r.run(YOKE_COMM_ALL_REDUCE, dtype, 3, data.data(), data.data(), -1, reduction));
                for (double one : decode(dtype, data)) EXPECT_TRUE(std::isnan(one)) << dtype;
            }
    });
}

TEST_P(Values, SumsOfSixteenBitsAreRoundedOnce)
{
    // 2048 + 1 + 1 in steps of float16 stays 2048; in float32 it is 2050.
    for (const std::vector<const char *> &nodes :
         {std::vector<const char *>{}, {"a", "b", "b"}, {"a", "b", "c"}})
        for (int64_t count : {3, 40'000})
            run({3, true, nodes}, [&](Rank &r) {
                const std::vector<double> values(static_cast<size_t>(count),
                                                 r.rank == 0 ? 2048 : 1);
                std::string data = encode(YOKE_F16, values);
                ASSERT_DONE(r.run(YOKE_COMM_ALL_REDUCE, YOKE_F16, count, data.data(), data.data(),
                                  -1, YOKE_REDUCE_SUM));
                EXPECT_EQ(decode(YOKE_F16, data),
                          std::vector<double>(static_cast<size_t>(count), 2050));
            });
}

}  // namespace yoke::test
