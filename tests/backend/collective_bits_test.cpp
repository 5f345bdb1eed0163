// Equal bits on every rank, in every run and by every path: additions in the order of ranks, then of nodes. Also
// memory shared by peers.
#include "ranks.h"

#include <cstring>

#include "kernels/common/numeric.h"

namespace yoke::test {

using Bits = Collectives;
YOKE_ON_EVERY_BACKEND(Bits);

namespace {

// Returns numbers of several magnitudes, so that the order of additions shows.
std::vector<double> random_elements(int rank, int64_t count)
{
    uint64_t state = static_cast<uint64_t>(rank) * 977 + 1;
    std::vector<double> values(static_cast<size_t>(count));
    for (double &one : values) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        one = static_cast<double>(static_cast<int64_t>(state) >> 11) * 0x1p-50;
        if (state & 64) one *= 100;
    }
    return values;
}

// Returns the sum in the contract's order, rounded once at the end.
template <class T, class Sum>
std::string expected_sum(const std::vector<std::vector<int>> &nodes, yoke_dtype dtype,
                         int64_t count)
{
    std::vector<std::string> inputs;
    int size = 0;
    for (const auto &node : nodes) size += static_cast<int>(node.size());
    for (int rank = 0; rank < size; ++rank)
        inputs.push_back(encode(dtype, random_elements(rank, count)));
    std::string out(inputs[0].size(), '\0');
    for (int64_t i = 0; i < count; ++i) {
        Sum total = 0;
        for (size_t node = 0; node < nodes.size(); ++node) {
            Sum part = 0;
            for (size_t j = 0; j < nodes[node].size(); ++j) {
                T one;
                memcpy(&one,
                       &inputs[static_cast<size_t>(nodes[node][j])]
                              [static_cast<size_t>(i) * sizeof(T)],
                       sizeof one);
                const Sum value = kernels::convert<Sum>(one);
                part = j == 0 ? value : part + value;
            }
            total = node == 0 ? part : total + part;
        }
        const T result = kernels::convert<T>(total);
        memcpy(&out[static_cast<size_t>(i) * sizeof(T)], &result, sizeof result);
    }
    return out;
}

std::string expected_sum_of(const std::vector<std::vector<int>> &nodes, yoke_dtype dtype,
                            int64_t count)
{
    if (dtype == YOKE_F64) return expected_sum<double, double>(nodes, dtype, count);
    if (dtype == YOKE_F32) return expected_sum<float, float>(nodes, dtype, count);
    if (dtype == YOKE_F16) return expected_sum<kernels::f16, float>(nodes, dtype, count);
    return expected_sum<kernels::bf16, float>(nodes, dtype, count);
}

struct Plan {
    std::vector<const char *> names;
    std::vector<std::vector<int>> nodes;
};

const std::vector<Plan> &plans()
{
    static const std::vector<Plan> all = {
        {{"a", "a", "a", "a"}, {{0, 1, 2, 3}}},   {{"a", "b", "a", "b"}, {{0, 2}, {1, 3}}},
        {{"a", "b", "b", "b"}, {{0}, {1, 2, 3}}}, {{"a", "b", "c", "d"}, {{0}, {1}, {2}, {3}}},
        {{"a", "a", "b"}, {{0, 1}, {2}}},
    };
    return all;
}

// all_reduce, reduce and reduce_scatter of the same elements.
void check_sums(Rank &r, yoke_dtype dtype, int64_t count, const std::string &expected)
{
    const std::string own = encode(dtype, random_elements(r.rank, count));
    std::string out(own.size(), '\0');
    ASSERT_DONE(
        r.run(YOKE_COMM_ALL_REDUCE, dtype, count, own.data(), out.data(), -1, YOKE_REDUCE_SUM));
    ASSERT_TRUE(out == expected) << "all_reduce";
    const int root = r.size - 1;
    ASSERT_DONE(r.run(YOKE_COMM_REDUCE, dtype, count, own.data(),
                      r.rank == root ? out.data() : nullptr, root, YOKE_REDUCE_SUM));
    ASSERT_TRUE(out == expected) << "reduce";
    const int64_t part = count / r.size;
    const size_t bytes = static_cast<size_t>(part) * bytes_of(dtype);
    std::string mine(bytes, '\0');
    ASSERT_DONE(
        r.run(YOKE_COMM_REDUCE_SCATTER, dtype, part, own.data(), mine.data(), -1, YOKE_REDUCE_SUM));
    ASSERT_TRUE(mine == expected.substr(static_cast<size_t>(r.rank) * bytes, bytes))
        << "reduce_scatter";
}

}  // namespace

TEST_P(Bits, SumsAreFormedInTheOrderOfRanksThenOfNodesByEveryWay)
{
    for (const Plan &plan : plans())
        for (yoke_dtype dtype : {YOKE_F64, YOKE_F32, YOKE_F16, YOKE_BF16})
            for (int64_t count : {300, 80'004}) {
                SCOPED_TRACE("dtype " + std::to_string(dtype) + ", " + std::to_string(count) +
                             " in " + std::to_string(plan.nodes.size()) + " nodes");
                const std::string expected = expected_sum_of(plan.nodes, dtype, count);
                for (bool shares_memory : {true, false})
                    run({static_cast<int>(plan.names.size()), shares_memory, plan.names},
                        [&](Rank &r) { check_sums(r, dtype, count, expected); });
            }
}

TEST_P(Bits, ATensorOfSeveralRoundsIsReducedLikeAShortOne)
{
    constexpr int64_t kCount = 1'200'012;
    const Plan &plan = plans()[1];
    const std::string expected = expected_sum_of(plan.nodes, YOKE_F32, kCount);
    run({4, true, plan.names}, [&](Rank &r) { check_sums(r, YOKE_F32, kCount, expected); });
}

TEST_P(Bits, MemoryThatRanksShareIsReducedWhereItLies)
{
    constexpr int64_t kCount = 100'003;
    for (const Plan &plan : plans())
        for (yoke_dtype dtype : {YOKE_F32, YOKE_BF16}) {
            const std::string expected = expected_sum_of(plan.nodes, dtype, kCount);
            for (bool shares_memory : {true, false})
                run({static_cast<int>(plan.names.size()), shares_memory, plan.names}, [&](Rank &r) {
                    void *first, *second;
                    const uint64_t bytes = kCount * bytes_of(dtype);
                    ASSERT_DONE(r.engine.mem_alloc(r.comm, bytes + 64, &first, nullptr));
                    ASSERT_DONE(r.engine.mem_alloc(r.comm, bytes + 64, &second, nullptr));
                    const std::string own = encode(dtype, random_elements(r.rank, kCount));
                    // Offsets: a common place; a separate place for each rank; memory of which a rank has none.
                    for (uint64_t offset : {0, r.rank * 8, r.rank ? 64 : 0}) {
                        char *data = static_cast<char *>(second) + offset;
                        memcpy(data, own.data(), bytes);
                        ASSERT_DONE(r.run(YOKE_COMM_ALL_REDUCE, dtype, kCount, data, data, -1,
                                          YOKE_REDUCE_SUM));
                        EXPECT_TRUE(!memcmp(data, expected.data(), bytes)) << "at " << offset;
                    }
                    if (r.rank == 1) {
                        ASSERT_DONE(r.engine.mem_free(r.comm, second, bytes + 64));
                    }
                    std::string plain = own;
                    char *data = r.rank == 1 ? plain.data() : static_cast<char *>(second);
                    memcpy(data, own.data(), bytes);
                    ASSERT_DONE(r.run(YOKE_COMM_ALL_REDUCE, dtype, kCount, data, data, -1,
                                      YOKE_REDUCE_SUM));
                    EXPECT_TRUE(!memcmp(data, expected.data(), bytes))
                        << "in memory that one freed";
                    told() = {};
                    expect_failure(YOKE_E_VALUE, r.engine.mem_free(r.comm, plain.data(), 8),
                                   "mem_free");
                });
        }
}

}  // namespace yoke::test
