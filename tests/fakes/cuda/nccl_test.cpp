// The collectives of the fake NCCL: values, between threads and between processes.
#include <sys/stat.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "tests/fakes/cuda/nccl_ranks.h"

namespace yoke::test {

namespace {

// Under ThreadSanitizer a million elements take half a minute, and show no more.
#ifdef __SANITIZE_THREAD__
constexpr size_t kLarge = 20011;
#else
constexpr size_t kLarge = 1000003;
#endif
constexpr size_t kSizes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

template <class T>
void put(char *place, T value)
{
    memcpy(place, &value, sizeof value);
}

template <class T>
double get(const char *place)
{
    T value;
    memcpy(&value, place, sizeof value);
    return static_cast<double>(value);
}

void encode(char *place, ncclDataType_t dtype, double value)
{
    switch (dtype) {
        case ncclInt8:
            return put(place, static_cast<int8_t>(value));
        case ncclUint8:
            return put(place, static_cast<uint8_t>(value));
        case ncclInt32:
            return put(place, static_cast<int32_t>(value));
        case ncclUint32:
            return put(place, static_cast<uint32_t>(value));
        case ncclInt64:
            return put(place, static_cast<int64_t>(value));
        case ncclUint64:
            return put(place, static_cast<uint64_t>(value));
        case ncclFloat16:
            return put(place, __double2half(value));
        case ncclFloat32:
            return put(place, static_cast<float>(value));
        case ncclFloat64:
            return put(place, value);
        case ncclBfloat16:
            return put(place, __double2bfloat16(value));
        case ncclFloat8e4m3:
            return put(place, __nv_fp8_e4m3(value));
        default:
            return put(place, __nv_fp8_e5m2(value));
    }
}

double decode(const char *place, ncclDataType_t dtype)
{
    switch (dtype) {
        case ncclInt8:
            return get<int8_t>(place);
        case ncclUint8:
            return get<uint8_t>(place);
        case ncclInt32:
            return get<int32_t>(place);
        case ncclUint32:
            return get<uint32_t>(place);
        case ncclInt64:
            return get<int64_t>(place);
        case ncclUint64:
            return get<uint64_t>(place);
        case ncclFloat16: {
            __half value;
            memcpy(&value, place, sizeof value);
            return static_cast<double>(__half2float(value));
        }
        case ncclFloat32:
            return get<float>(place);
        case ncclFloat64:
            return get<double>(place);
        case ncclBfloat16: {
            __nv_bfloat16 value;
            memcpy(&value, place, sizeof value);
            return static_cast<double>(__bfloat162float(value));
        }
        case ncclFloat8e4m3:
            return get<__nv_fp8_e4m3>(place);
        default:
            return get<__nv_fp8_e5m2>(place);
    }
}

// Returns a number that every type can represent. Sums and products of four such numbers can be represented, too.
double value_of(int rank, size_t at)
{
    return static_cast<double>((at + static_cast<size_t>(rank) * 2) % 3);
}

bool is_integer(ncclDataType_t dtype)
{
    return dtype <= ncclUint64;
}

double reduced(int size, size_t at, ncclDataType_t dtype, ncclRedOp_t op)
{
    double all = value_of(0, at);
    for (int rank = 1; rank < size; ++rank) {
        const double one = value_of(rank, at);
        all = op == ncclProd  ? all * one
              : op == ncclMax ? std::max(all, one)
              : op == ncclMin ? std::min(all, one)
                              : all + one;
    }
    if (op != ncclAvg) return all;
    return is_integer(dtype) ? std::floor(all / size) : all / size;
}

// Elements of device memory, read and written as doubles.
struct Numbers {
    ncclDataType_t dtype;
    size_t count;
    char *place;

    Numbers(NcclRank &own, ncclDataType_t type, size_t elements)
        : dtype(type),
          count(elements),
          place(own.block(std::vector<char>(elements * kSizes[type], 0x11)))
    {
    }
    void fill(int rank)
    {
        for (size_t i = 0; i < count; ++i)
            encode(place + i * kSizes[dtype], dtype, value_of(rank, i));
    }
    void expect(const char *what, const std::function<double(size_t)> &wanted) const
    {
        for (size_t i = 0; i < count; ++i) {
            char rounded[8];
            encode(rounded, dtype, wanted(i));
            const double found = decode(place + i * kSizes[dtype], dtype);
            if (found == decode(rounded, dtype)) continue;
            ADD_FAILURE() << what << ": dtype " << dtype << ", element " << i << " of " << count
                          << " is " << found << ", not " << wanted(i);
            return;
        }
    }
    void free() const { EXPECT_EQ(cudaFree(place), cudaSuccess); }
};

size_t parts(const NcclRank &own, size_t count)
{
    return count * static_cast<size_t>(own.size);
}

void try_all_reduce(NcclRank &own, ncclDataType_t dtype, ncclRedOp_t op, size_t count)
{
    Numbers in(own, dtype, count), out(own, dtype, count);
    in.fill(own.rank);
    EXPECT_EQ(own.nccl.ncclAllReduce(in.place, out.place, count, dtype, op, own.comm, own.stream),
              ncclSuccess);
    EXPECT_EQ(own.nccl.ncclAllReduce(in.place, in.place, count, dtype, op, own.comm, own.stream),
              ncclSuccess);
    own.synchronize();
    for (const Numbers *each : {&in, &out}) {
        each->expect("all_reduce", [&](size_t i) { return reduced(own.size, i, dtype, op); });
        each->free();
    }
}

void try_rooted(NcclRank &own, ncclDataType_t dtype, size_t count, int root)
{
    Numbers whole(own, dtype, count), sum(own, dtype, count), all(own, dtype, parts(own, count)),
        spread(own, dtype, parts(own, count)), part(own, dtype, count);
    whole.fill(own.rank);
    spread.fill(own.rank);
    const bool is_root = own.rank == root;
    const Nccl &nccl = own.nccl;
    EXPECT_EQ(nccl.ncclReduce(whole.place, is_root ? sum.place : nullptr, count, dtype, ncclSum,
                              root, own.comm, own.stream),
              ncclSuccess);
    EXPECT_EQ(nccl.ncclGather(whole.place, is_root ? all.place : nullptr, count, dtype, root,
                              own.comm, own.stream),
              ncclSuccess);
    EXPECT_EQ(nccl.ncclScatter(is_root ? spread.place : nullptr, part.place, count, dtype, root,
                               own.comm, own.stream),
              ncclSuccess);
    EXPECT_EQ(
        nccl.ncclBroadcast(whole.place, whole.place, count, dtype, root, own.comm, own.stream),
        ncclSuccess);
    own.synchronize();
    if (is_root) {
        sum.expect("reduce", [&](size_t i) { return reduced(own.size, i, dtype, ncclSum); });
        all.expect("gather",
                   [&](size_t i) { return value_of(static_cast<int>(i / count), i % count); });
    }
    const size_t mine = static_cast<size_t>(own.rank) * count;
    part.expect("scatter", [&](size_t i) { return value_of(root, mine + i); });
    whole.expect("broadcast", [&](size_t i) { return value_of(root, i); });
    for (const Numbers *each : {&whole, &sum, &all, &spread, &part}) each->free();
}

void try_parts(NcclRank &own, ncclDataType_t dtype, size_t count)
{
    Numbers one(own, dtype, count), all(own, dtype, parts(own, count)),
        spread(own, dtype, parts(own, count)), crossed(own, dtype, parts(own, count));
    one.fill(own.rank);
    spread.fill(own.rank);
    const Nccl &nccl = own.nccl;
    EXPECT_EQ(nccl.ncclAllGather(one.place, all.place, count, dtype, own.comm, own.stream),
              ncclSuccess);
    EXPECT_EQ(nccl.ncclAlltoAll(spread.place, crossed.place, count, dtype, own.comm, own.stream),
              ncclSuccess);
    EXPECT_EQ(nccl.ncclReduceScatter(spread.place, one.place, count, dtype, ncclSum, own.comm,
                                     own.stream),
              ncclSuccess);
    own.synchronize();
    const size_t mine = static_cast<size_t>(own.rank) * count;
    const auto from = [&](size_t i) { return static_cast<int>(i / count); };
    all.expect("all_gather", [&](size_t i) { return value_of(from(i), i % count); });
    crossed.expect("all_to_all", [&](size_t i) { return value_of(from(i), mine + i % count); });
    one.expect("reduce_scatter",
               [&](size_t i) { return reduced(own.size, mine + i, dtype, ncclSum); });
    for (const Numbers *each : {&one, &all, &spread, &crossed}) each->free();
}

// Sends to the next rank and to the own rank, in a group.
void try_messages(NcclRank &own, size_t count)
{
    const int next = (own.rank + 1) % own.size, last = (own.rank + own.size - 1) % own.size;
    Numbers out(own, ncclFloat, count), in(own, ncclFloat, count), own_in(own, ncclFloat, count);
    out.fill(own.rank);
    const Nccl &nccl = own.nccl;
    EXPECT_EQ(nccl.ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(nccl.ncclSend(out.place, count, ncclFloat, next, own.comm, own.stream), ncclSuccess);
    EXPECT_EQ(nccl.ncclRecv(in.place, count, ncclFloat, last, own.comm, own.stream), ncclSuccess);
    EXPECT_EQ(nccl.ncclSend(out.place, count, ncclFloat, own.rank, own.comm, own.stream),
              ncclSuccess);
    EXPECT_EQ(nccl.ncclRecv(own_in.place, count, ncclFloat, own.rank, own.comm, own.stream),
              ncclSuccess);
    EXPECT_EQ(nccl.ncclGroupEnd(), ncclSuccess);
    own.synchronize();
    in.expect("recv", [&](size_t i) { return value_of(last, i); });
    own_in.expect("recv of itself", [&](size_t i) { return value_of(own.rank, i); });
    for (const Numbers *each : {&out, &in, &own_in}) each->free();
}

class Collectives : public testing::TestWithParam<std::tuple<int, bool>> {
protected:
    void run(const RankBody &body)
    {
        const auto [size, are_processes] = GetParam();
        if (are_processes && !kMayFork)
            GTEST_SKIP() << "ThreadSanitizer does not support these forks";
        in_fresh_process([&] {
            alarm(60);
            (are_processes ? in_processes : in_threads)(size, [&](NcclRank &own) {
                own.init();
                body(own);
                own.destroy();
                EXPECT_TRUE(own.nccl.fake_nccl_held() == 0 || !are_processes);
            });
        });
    }
};

}  // namespace

TEST_P(Collectives, ReduceEveryTypeByEveryOperation)
{
    run([](NcclRank &own) {
        for (int dtype = 0; dtype < ncclNumTypes; ++dtype)
            for (int op = 0; op < ncclNumOps; ++op)
                for (const size_t count : {0, 1, 103})
                    try_all_reduce(own, static_cast<ncclDataType_t>(dtype),
                                   static_cast<ncclRedOp_t>(op), count);
    });
}

TEST_P(Collectives, BringEveryElementToItsPlace)
{
    run([](NcclRank &own) {
        for (const ncclDataType_t dtype : {ncclUint8, ncclFloat16, ncclFloat32, ncclInt64})
            for (const size_t count : {0, 1, 1003}) {
                try_parts(own, dtype, count);
                for (int root = 0; root < own.size; ++root) try_rooted(own, dtype, count, root);
            }
        for (const size_t count : {0, 1, 1003}) try_messages(own, count);
    });
}

TEST_P(Collectives, TakeLargeTensors)
{
    run([](NcclRank &own) {
        try_all_reduce(own, ncclFloat, ncclSum, kLarge);
        try_parts(own, ncclInt8, kLarge);
        try_rooted(own, ncclInt8, kLarge, own.size - 1);
        try_messages(own, kLarge);
    });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives,
                         testing::Combine(testing::Values(2, 3, 4), testing::Bool()),
                         [](const auto &of) {
                             return std::to_string(std::get<0>(of.param)) +
                                    (std::get<1>(of.param) ? "processes" : "threads");
                         });

TEST(Rounding, OfSixteenBitsIsDoneAtEachHop)
{
    in_fresh_process([] {
        in_threads(3, [](NcclRank &own) {
            own.init();
            // 256 + 1 is 256 in bf16, twice; 2048 + 1 is 2048 in f16.
            const bool is_first = own.rank == 0;
            __nv_bfloat16 *const b =
                own.block(std::vector<__nv_bfloat16>(4, __float2bfloat16(is_first ? 256 : 1)));
            __half *const h = own.block(std::vector<__half>(4, __float2half(is_first ? 2048 : 1)));
            EXPECT_EQ(own.nccl.ncclAllReduce(b, b, 4, ncclBfloat16, ncclSum, own.comm, own.stream),
                      ncclSuccess);
            EXPECT_EQ(own.nccl.ncclAllReduce(h, h, 4, ncclHalf, ncclSum, own.comm, own.stream),
                      ncclSuccess);
            own.synchronize();
            EXPECT_EQ(__bfloat162float(b[3]), 256.f);
            EXPECT_EQ(__half2float(h[3]), 2048.f);
        });
    });
}

TEST(Extremes, OfFloatsDropNaN)
{
    threads_of_two([](NcclRank &own) {
        own.init();
        constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
        for (const ncclRedOp_t op : {ncclMin, ncclMax}) {
            const bool is_first = own.rank == 0;
            float *const x = own.block<float>({is_first ? kNaN : 3, is_first ? 3 : kNaN});
            EXPECT_EQ(own.nccl.ncclAllReduce(x, x, 2, ncclFloat, op, own.comm, own.stream),
                      ncclSuccess);
            own.synchronize();
            EXPECT_EQ(x[0], 3.f);
            EXPECT_EQ(x[1], 3.f);
        }
    });
}

TEST(Memory, IsGivenBackOnceAllHaveReadIt)
{
    if (!kMayFork) GTEST_SKIP() << "ThreadSanitizer does not support these forks";
    in_fresh_process([] {
        in_processes(2, [](NcclRank &own) {
            own.init();
            float *const x = own.floats(16 << 20, 1);  // 64 MiB
            for (int i = 0; i < 6; ++i) EXPECT_EQ(own.all_reduce(x, 16 << 20), ncclSuccess);
            own.synchronize();
            EXPECT_EQ(x[(16 << 20) - 1], 64.f);
            own.barrier();
            EXPECT_EQ(own.all_reduce(x, 1), ncclSuccess) << "looks after those before";
            own.synchronize();
            struct stat file {};
            size_t most = 0;
            for (int number = 3; number < 64; ++number)
                if (fstat(number, &file) == 0 && file.st_size > (1l << 50))
                    most = std::max(most, static_cast<size_t>(file.st_blocks) * 512);
            EXPECT_GT(most, 0u) << "the board";
            EXPECT_LT(most, size_t{200} << 20) << "of 768 MiB that passed";
            own.destroy();
        });
    });
}

}  // namespace yoke::test
