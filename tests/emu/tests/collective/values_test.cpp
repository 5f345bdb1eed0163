// Each collective over the fake NCCL: values, dtypes, sizes, and memory that input and output share.
#include <limits>

#include "cases.h"
#include "kernels/common/collective.h"
#include "kernels/common/combination.h"
#include "tests/core/fresh_process.h"

namespace yoke::test {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr int32_t kMoves[] = {YOKE_COMM_BROADCAST, YOKE_COMM_ALL_GATHER, YOKE_COMM_GATHER,
                              YOKE_COMM_SCATTER, YOKE_COMM_ALL_TO_ALL};
constexpr int32_t kReductions[] = {YOKE_COMM_ALL_REDUCE, YOKE_COMM_REDUCE,
                                   YOKE_COMM_REDUCE_SCATTER};

bool has_root(int32_t op)
{
    return kernels::has_peer(op) && !kernels::is_message(op);
}

// Each op, dtype and reduction, with each root if the op has a root.
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
                if (kernels::can_reduce(dtype, reduction)) add({op, dtype, count, -1, reduction});
    }
    return cases;
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
        EXPECT_EQ(engine().version(20, nullptr, 0), 21900);
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
        const std::vector<std::vector<double>> in = {{kNan, 1, -2, -kNan, 0, -inf, 3, -8},
                                                     {1, kNan, -1, 2, -0.0, 4, inf, -16}};
        with_ranks({.size = 2}, [&](Rank &rank) {
            for (const yoke_dtype dtype : {YOKE_F64, YOKE_F32, YOKE_F16, YOKE_BF16})
                for (const int32_t reduction : {YOKE_REDUCE_MIN, YOKE_REDUCE_MAX})
                    run(rank, {YOKE_COMM_ALL_REDUCE, dtype, 8, -1, reduction}, in, Place::kApart);
            const std::vector<std::vector<double>> small = {{kNan, 1, -2, 448}, {1, kNan, -1, 2}};
            for (const yoke_dtype dtype : {YOKE_F8_E4M3, YOKE_F8_E5M2})
                for (const int32_t reduction : {YOKE_REDUCE_MIN, YOKE_REDUCE_MAX})
                    run(rank, {YOKE_COMM_ALL_REDUCE, dtype, 4, -1, reduction}, small, Place::kSame);
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
                ASSERT_EQ(
                    rank.run(YOKE_COMM_ALL_REDUCE, YOKE_BF16, 1, x, y, -1, YOKE_REDUCE_SUM, flags),
                    YOKE_OK)
                    << failure().message;
                EXPECT_EQ(decode(YOKE_BF16, rank.download(y, 2))[0], flags ? 260 : 258);
            }
            for (const int32_t op : kReductions) {
                const Case is{
                    op, YOKE_F16, 5, has_root(op) ? 2 : -1, YOKE_REDUCE_SUM, YOKE_COMM_IN_F32};
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
            EXPECT_EQ(decode(YOKE_I32, rank.download(y, 8)),
                      (std::vector<double>{10.0 + other, 20}));
            EXPECT_EQ(decode(YOKE_I32, rank.download(z, 8)), (std::vector<double>{11, 20}));
            rank.wait();
        });
        expect_none_held();
    });
}

// In a process with several cards, a single thread calls for all ranks.
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
