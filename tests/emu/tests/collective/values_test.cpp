// Each collective over the fake NCCL: values, dtypes, sizes, and memory that input and output share.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/common/collective.h"
#include "kernels/common/combination.h"
#include "ranks.h"
#include "tests/core/fresh_process.h"

namespace yoke::test {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Small numbers, whose sums and products each dtype has.
double number(int rank, int64_t i)
{
    return static_cast<double>((rank + i * (rank + 2)) % 3 + 1);
}

struct Case {
    int32_t op;
    yoke_dtype dtype;
    int64_t count;
    int root = -1;
    int32_t reduction = -1;
    uint32_t flags = 0;
};

int64_t parts_in(int32_t op, int size)
{
    const bool has = op == YOKE_COMM_SCATTER || op == YOKE_COMM_REDUCE_SCATTER ||
                     op == YOKE_COMM_ALL_TO_ALL;
    return has ? size : 1;
}

int64_t parts_out(int32_t op, int size)
{
    const bool has =
        op == YOKE_COMM_ALL_GATHER || op == YOKE_COMM_GATHER || op == YOKE_COMM_ALL_TO_ALL;
    return has ? size : 1;
}

// What a rank gives, all of its parts.
std::vector<double> given(const Case &is, int rank, int size)
{
    std::vector<double> values(static_cast<size_t>(is.count * parts_in(is.op, size)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = number(rank, static_cast<int64_t>(i));
    if (is.dtype == YOKE_BOOL)
        for (double &x : values) x = x > 1;
    return values;
}

double reduce(int32_t reduction, double a, double b)
{
    switch (reduction) {
        case YOKE_REDUCE_PROD:
            return a * b;
        case YOKE_REDUCE_MIN:
            return std::isnan(a) || std::isnan(b) ? kNan : std::min(a, b);
        case YOKE_REDUCE_MAX:
            return std::isnan(a) || std::isnan(b) ? kNan : std::max(a, b);
        default:
            return a + b;
    }
}

// What a rank is to have, or nothing.
std::vector<double> wanted(const Case &is, const std::vector<std::vector<double>> &in, int rank)
{
    const int size = static_cast<int>(in.size());
    const auto count = static_cast<size_t>(is.count), me = static_cast<size_t>(rank);
    const auto slice = [&](size_t from, size_t part) {
        const auto begin = in[from].begin() + static_cast<std::ptrdiff_t>(part * count);
        return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(count));
    };
    std::vector<double> out;
    const auto add = [&](const std::vector<double> &more) {
        out.insert(out.end(), more.begin(), more.end());
    };
    const bool is_root = is.root == rank;
    switch (is.op) {
        case YOKE_COMM_BROADCAST:
            return in[static_cast<size_t>(is.root)];
        case YOKE_COMM_SCATTER:
            return slice(static_cast<size_t>(is.root), me);
        case YOKE_COMM_GATHER:
            if (!is_root) return {};
            [[fallthrough]];
        case YOKE_COMM_ALL_GATHER:
            for (size_t from = 0; from < in.size(); ++from) add(slice(from, 0));
            return out;
        case YOKE_COMM_ALL_TO_ALL:
            for (size_t from = 0; from < in.size(); ++from) add(slice(from, me));
            return out;
        default:
            break;
    }
    if (is.op == YOKE_COMM_REDUCE && !is_root) return {};
    out = in[0];
    for (size_t from = 1; from < in.size(); ++from)
        for (size_t i = 0; i < out.size(); ++i) out[i] = reduce(is.reduction, out[i], in[from][i]);
    if (is.reduction == YOKE_REDUCE_AVG)
        for (double &x : out) x /= size;
    if (is.op == YOKE_COMM_REDUCE_SCATTER)
        out = std::vector<double>(out.begin() + static_cast<std::ptrdiff_t>(me * count),
                                  out.begin() + static_cast<std::ptrdiff_t>((me + 1) * count));
    return out;
}

void expect_values(const Case &is, const std::vector<double> &found, const std::vector<double> &to)
{
    ASSERT_EQ(found.size(), to.size());
    const double slack = is.reduction == YOKE_REDUCE_AVG ? 0.01 : 0;
    size_t wrong = 0;
    for (size_t i = 0; i < to.size(); ++i) {
        const bool same = std::isnan(to[i]) ? std::isnan(found[i])
                                            : std::fabs(found[i] - to[i]) <= slack * to[i];
        if (!same && ++wrong <= 3)
            ADD_FAILURE() << kernels::call_name(is.op) << " of dtype " << is.dtype << ", reduction "
                          << is.reduction << ", element " << i << " is " << found[i] << ", not "
                          << to[i];
    }
    EXPECT_EQ(wrong, 0u);
}

enum class Place { kApart, kSame, kOwnPart };

// Runs one case in one rank; `in` is what all ranks give.
void run(Rank &rank, const Case &is, const std::vector<std::vector<double>> &in, Place place)
{
    const bool is_root = is.root == rank.rank;
    const size_t item = size_of(is.dtype), count = static_cast<size_t>(is.count) * item;
    const bool gives = is.op != YOKE_COMM_SCATTER && is.op != YOKE_COMM_BROADCAST ? true : is_root;
    const bool takes = is.op != YOKE_COMM_GATHER && is.op != YOKE_COMM_REDUCE ? true : is_root;
    const size_t in_bytes = count * static_cast<size_t>(parts_in(is.op, rank.size)),
                 out_bytes = count * static_cast<size_t>(parts_out(is.op, rank.size));
    char *memory = static_cast<char *>(rank.room(std::max(in_bytes, out_bytes)));
    char *from = memory, *to = memory;
    const bool is_broadcast = is.op == YOKE_COMM_BROADCAST;
    if (place == Place::kApart && !is_broadcast) to = static_cast<char *>(rank.room(out_bytes));
    const size_t part = static_cast<size_t>(rank.rank) * count;
    if (place == Place::kOwnPart) (is.op == YOKE_COMM_ALL_GATHER ? from : to) += part;
    const std::string bytes = encode(is.dtype, in[static_cast<size_t>(rank.rank)]);
    if (gives && !bytes.empty()) {
        const void *source = rank.upload(bytes);
        EXPECT_EQ(open_module().copy(rank.device, from, source, bytes.size(), YOKE_COPY_DEVICE,
                                     rank.stream),
                  YOKE_OK);
    }
    ASSERT_EQ(rank.run(is.op, is.dtype, is.count, gives ? from : nullptr, takes ? to : nullptr,
                       is.root, is.reduction, is.flags),
              YOKE_OK)
        << failure().message;
    if (takes)
        expect_values(is, decode(is.dtype, rank.download(to, out_bytes)),
                      wanted(is, in, rank.rank));
    if (gives && to != from && place == Place::kApart)
        EXPECT_EQ(rank.download(from, in_bytes), bytes) << "the input is as it was";
}

std::vector<std::vector<double>> given_by_all(const Case &is, int size)
{
    std::vector<std::vector<double>> in;
    for (int rank = 0; rank < size; ++rank) in.push_back(given(is, rank, size));
    return in;
}

void run(const Layout &layout, const std::vector<Case> &cases, Place place = Place::kApart)
{
    with_ranks(layout, [&](Rank &rank) {
        for (const Case &is : cases) run(rank, is, given_by_all(is, rank.size), place);
        rank.sync();
        rank.wait();
    });
}

constexpr int32_t kMoves[] = {YOKE_COMM_BROADCAST, YOKE_COMM_ALL_GATHER, YOKE_COMM_GATHER,
                              YOKE_COMM_SCATTER, YOKE_COMM_ALL_TO_ALL};
constexpr int32_t kReductions[] = {YOKE_COMM_ALL_REDUCE, YOKE_COMM_REDUCE,
                                   YOKE_COMM_REDUCE_SCATTER};

bool has_root(int32_t op)
{
    return kernels::has_peer(op) && !kernels::is_message(op);
}

// Each op, dtype and reduction, with each root where there is one.
std::vector<Case> all_cases(int64_t count, int size)
{
    std::vector<Case> cases;
    const auto add = [&](Case is) {
        for (int root = has_root(is.op) ? size - 1 : -1; root >= -1; --root) {
            if (root < 0 && has_root(is.op)) break;
            is.root = root;
            cases.push_back(is);
        }
    };
    for (const yoke_dtype dtype : kDtypes) {
        for (const int32_t op : kMoves) add({op, dtype, count});
        for (const int32_t op : kReductions)
            for (int32_t reduction = 0; reduction <= YOKE_REDUCE_AVG; ++reduction)
                if (kernels::can_reduce(dtype, reduction))
                    add({op, dtype, count, -1, reduction});
    }
    return cases;
}

void set_devices()
{
    setenv("FAKE_CUDA_DEVICES", "9.0,9.0,9.0,9.0", 1);
}

}  // namespace

TEST(NcclValues, EachCallDtypeAndReductionIsRightOnTwoToFourRanks)
{
    for (int size = 2; size <= 4; ++size)
        in_fresh_process([size] {
            set_devices();
            run({.size = size}, all_cases(5, size));
            expect_none_held();
        });
}

TEST(NcclValues, AnOlderNcclWithoutTheNewerCallsGivesTheSame)
{
    in_fresh_process([] {
        set_devices();
        open_module(OLD_FOLDER ":" DRIVER_FOLDER);
        EXPECT_EQ(engine().version(nullptr, 0), 21900);
        run({.size = 3}, all_cases(5, 3));
        expect_none_held();
    });
}

TEST(NcclValues, ACallThatIsInProgressForAWhileIsWaitedFor)
{
    in_fresh_process([] {
        set_devices();
        setenv("FAKE_NCCL_IN_PROGRESS", "40", 1);
        run({.size = 2}, all_cases(3, 2));
        expect_none_held();
    });
}

TEST(NcclValues, SizesFromNothingToAMillionAreRight)
{
    for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{1000003}})
        in_fresh_process([count] {
            set_devices();
            std::vector<Case> cases;
            for (const int32_t op : kMoves)
                cases.push_back({op, YOKE_BF16, count, has_root(op) ? 1 : -1});
            for (const int32_t op : kReductions)
                for (const int32_t reduction : {YOKE_REDUCE_SUM, YOKE_REDUCE_MAX})
                    cases.push_back({op, YOKE_F32, count, has_root(op) ? 0 : -1, reduction});
            run({.size = 2}, cases);
            expect_none_held();
        });
}

TEST(NcclValues, ARankAloneHasWhatItGives)
{
    in_fresh_process([] {
        run({.size = 1}, all_cases(7, 1));
        expect_none_held();
    });
}

TEST(NcclValues, InputAndOutputMayBeginAtOneAddress)
{
    for (const char *folders : {DRIVER_FOLDER, OLD_FOLDER ":" DRIVER_FOLDER})
        in_fresh_process([folders] {
            set_devices();
            open_module(folders);
            run({.size = 3}, all_cases(5, 3), Place::kSame);
            expect_none_held();
        });
}

TEST(NcclValues, ARankMayGiveItsPartOfTheOutputAndTakeItsPartOfTheInput)
{
    in_fresh_process([] {
        set_devices();
        std::vector<Case> cases;
        for (const yoke_dtype dtype : {YOKE_F32, YOKE_F16, YOKE_I8}) {
            cases.push_back({YOKE_COMM_ALL_GATHER, dtype, 5});
            for (const int32_t reduction : {YOKE_REDUCE_SUM, YOKE_REDUCE_MIN})
                cases.push_back({YOKE_COMM_REDUCE_SCATTER, dtype, 5, -1, reduction});
        }
        run({.size = 3}, cases, Place::kOwnPart);
        expect_none_held();
    });
}

TEST(NcclValues, MinAndMaxAreNanWhereOneElementIs)
{
    in_fresh_process([] {
        set_devices();
        const double inf = std::numeric_limits<double>::infinity();
        const std::vector<std::vector<double>> in = {
            {kNan, 1, -2, -kNan, 0, -inf, 3, -8}, {1, kNan, -1, 2, -0.0, 4, inf, -16}};
        with_ranks({.size = 2}, [&](Rank &rank) {
            for (const yoke_dtype dtype : {YOKE_F64, YOKE_F32, YOKE_F16, YOKE_BF16})
                for (const int32_t reduction : {YOKE_REDUCE_MIN, YOKE_REDUCE_MAX})
                    run(rank, {YOKE_COMM_ALL_REDUCE, dtype, 8, -1, reduction}, in, Place::kApart);
            const std::vector<std::vector<double>> small = {{kNan, 1, -2, 448}, {1, kNan, -1, 2}};
            for (const yoke_dtype dtype : {YOKE_F8_E4M3, YOKE_F8_E5M2})
                for (const int32_t reduction : {YOKE_REDUCE_MIN, YOKE_REDUCE_MAX})
                    run(rank, {YOKE_COMM_ALL_REDUCE, dtype, 4, -1, reduction}, small,
                        Place::kSame);
            rank.wait();
        });
        expect_none_held();
    });
}

TEST(NcclValues, SumsInF32AreRoundedOnce)
{
    in_fresh_process([] {
        set_devices();
        // In bf16 each 1 is lost behind 256: NCCL's own sum stays there.
        const std::vector<std::vector<double>> in = {{256}, {1}, {1}, {2}};
        with_ranks({.size = 4}, [&](Rank &rank) {
            void *x = rank.upload(encode(YOKE_BF16, in[static_cast<size_t>(rank.rank)]));
            void *y = rank.room(2);
            for (const uint32_t flags : {0u, YOKE_COMM_IN_F32}) {
                ASSERT_EQ(rank.run(YOKE_COMM_ALL_REDUCE, YOKE_BF16, 1, x, y, -1, YOKE_REDUCE_SUM,
                                   flags),
                          YOKE_OK)
                    << failure().message;
                EXPECT_EQ(decode(YOKE_BF16, rank.download(y, 2))[0], flags ? 260 : 258);
            }
            for (const int32_t op : kReductions) {
                const Case is{op, YOKE_F16, 5, has_root(op) ? 2 : -1, YOKE_REDUCE_SUM,
                              YOKE_COMM_IN_F32};
                run(rank, is, given_by_all(is, 4), Place::kApart);
            }
            rank.wait();
        });
        expect_none_held();
    });
}

TEST(NcclValues, MessagesPassBothWaysInOneGroup)
{
    in_fresh_process([] {
        set_devices();
        with_ranks({.size = 2}, [](Rank &rank) {
            const int other = 1 - rank.rank;
            void *x = rank.upload(encode(YOKE_I32, {10.0 + rank.rank, 20}));
            void *y = rank.room(8), *z = rank.room(8);
            ASSERT_EQ(engine().group_begin(rank.comm), YOKE_OK);
            ASSERT_EQ(rank.run(YOKE_COMM_SEND, YOKE_I32, 2, x, nullptr, other), YOKE_OK);
            ASSERT_EQ(rank.run(YOKE_COMM_ALL_REDUCE, YOKE_I32, 2, x, z, -1, YOKE_REDUCE_MAX),
                      YOKE_OK);
            ASSERT_EQ(rank.run(YOKE_COMM_RECV, YOKE_I32, 2, nullptr, y, other), YOKE_OK);
            ASSERT_EQ(engine().group_end(rank.comm), YOKE_OK) << failure().message;
            EXPECT_EQ(decode(YOKE_I32, rank.download(y, 8)), (std::vector<double>{10.0 + other, 20}));
            EXPECT_EQ(decode(YOKE_I32, rank.download(z, 8)), (std::vector<double>{11, 20}));
            rank.wait();
        });
        expect_none_held();
    });
}

// A process with several cards: its one thread calls for all ranks.
TEST(NcclValues, GroupsOfSeveralCommunicatorsOfOneThreadAreIssuedTogether)
{
    in_fresh_process([] {
        set_devices();
        std::vector<Rank *> all(3);
        with_ranks({.size = 3}, [&](Rank &rank) {
            all[static_cast<size_t>(rank.rank)] = &rank;
            rank.wait();
            if (rank.rank == 0) {
                std::vector<void *> x, y;
                for (Rank *one : all) {
                    x.push_back(one->upload(encode(YOKE_F32, {1.0 + one->rank})));
                    y.push_back(one->room(4));
                    EXPECT_EQ(engine().group_begin(one->comm), YOKE_OK);
                }
                for (Rank *one : all) {
                    const auto i = static_cast<size_t>(one->rank);
                    EXPECT_EQ(one->run(YOKE_COMM_ALL_REDUCE, YOKE_F32, 1, x[i], y[i], -1,
                                       YOKE_REDUCE_MAX),
                              YOKE_OK);
                }
                for (Rank *one : all) EXPECT_EQ(engine().group_end(one->comm), YOKE_OK);
                for (Rank *one : all)
                    EXPECT_EQ(decode(YOKE_F32, one->download(y[static_cast<size_t>(one->rank)], 4)),
                              std::vector<double>{3});
            }
            rank.wait();
        });
        expect_none_held();
    });
}

}  // namespace yoke::test
