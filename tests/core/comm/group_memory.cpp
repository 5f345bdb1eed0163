// Tests of groups with tensors that share memory: core/comm/collective.cpp, group.cpp, call_runner.cpp.
#include "tests/core/comm/threads.h"

namespace yoke::test {
namespace {

Tensor view_of(const Tensor &base, int64_t offset, int64_t count)
{
    const int64_t shape[] = {count}, strides[] = {1};
    return make_view(*base, shape, strides, offset);
}

// ---- The tensors of a call --------------------------------------------------------------------------------------

// Layout of a call's tensors in 8 parts of `part` elements each.
struct Place {
    int32_t op, reduction, root;
    int64_t in_parts, out_parts;
};

// Writes elements that differ between all ranks and places. They are small enough for exact sums.
void number(const Tensor &base, int32_t rank)
{
    for (int64_t i = 0; i < base->numel; ++i)
        reinterpret_cast<float *>(base->data)[i] = static_cast<float>(4 * (i % 100003) + rank);
}

void expect_as_apart(Group &group, const Place &place, int64_t part, int64_t in_at, int64_t out_at)
{
    const auto call = [&](const Tensor &in, const Tensor &out) {
        group.run({place.op, place.reduction, place.root, in, out}, false);
    };
    const bool is_root = place.root < 0 || place.root == group.rank();
    const bool gives = place.op != YOKE_COMM_SCATTER || is_root;
    const bool takes = place.op != YOKE_COMM_GATHER || is_root;
    const Tensor apart = filled(8 * part, 0), together = filled(8 * part, 0);
    number(apart, group.rank());
    number(together, group.rank());
    const Tensor out = takes ? filled(place.out_parts * part, -1) : Tensor();
    call(gives ? view_of(apart, in_at, place.in_parts * part) : Tensor(), out);
    const Tensor to = takes ? view_of(together, out_at, place.out_parts * part) : Tensor();
    call(gives ? view_of(together, in_at, place.in_parts * part) : Tensor(), to);
    if (!takes) return;
    const bool is_alike = values(out) == values(ops::contiguous(*to));
    EXPECT_TRUE(is_alike) << collective_name(place.op) << " on rank " << group.rank() << " of "
                          << part << " elements, 't' from " << in_at << ", 'out' from " << out_at;
}

// 'out' has the same values as in separate memory, whichever elements of 't' it overlaps.
TEST(GroupMemory, TensorsOfOneCallMayOverlapInAnyWay)
{
    std::vector<Ref<Group>> groups = init_threads(3, 0, kCall);
    const Place places[] = {{YOKE_COMM_ALL_GATHER, -1, -1, 1, 3},
                            {YOKE_COMM_GATHER, -1, 1, 1, 3},
                            {YOKE_COMM_SCATTER, -1, 1, 3, 1},
                            {YOKE_COMM_REDUCE_SCATTER, YOKE_REDUCE_SUM, -1, 3, 1},
                            {YOKE_COMM_ALL_TO_ALL, -1, -1, 3, 3}};
    const auto told = each_rank(groups, [&](Group &group) {
        for (const Place &place : places)
            for (const int64_t part : {int64_t{5}, int64_t{4000}, int64_t{300000}})
                for (const int64_t shift : {int64_t{0}, int64_t{1}, part, part + 1, 2 * part}) {
                    expect_as_apart(group, place, part, 0, shift);
                    expect_as_apart(group, place, part, shift, 0);
                }
    });
    EXPECT_EQ(told, std::vector<std::string>(3));
}

// ---- Calls of two groups on a storage ---------------------------------------------------------------------------

// Runs `body` on each rank with a group of each kind.
void in_two_groups(const std::function<void(Group &one, Group &other)> &body)
{
    std::vector<Ref<Group>> ones = init_threads(2, 0, kCall), others = init_threads(2, 0, kCall);
    const auto told =
        each_rank(ones, [&](Group &one) { body(one, *others[static_cast<size_t>(one.rank())]); });
    EXPECT_EQ(told, std::vector<std::string>(2));
}

TEST(GroupMemory, PartsOfOneTensorMayBeInUseInTwoGroups)
{
    in_two_groups([](Group &one, Group &other) {
        const Tensor base = filled(64, 1);
        const Tensor halves[] = {view_of(base, 0, 32), view_of(base, 32, 32)};
        const Ref<Work> waits = other.run(reduce_all(halves[1]), true);
        for (int i = 0; i < 50; ++i) {
            const Ref<Work> first = one.run(reduce_all(halves[0], YOKE_REDUCE_MAX), true);
            const Ref<Work> second = other.run(reduce_all(halves[1], YOKE_REDUCE_MAX), true);
            one.run(reduce_all(view_of(base, 0, 1), YOKE_REDUCE_MAX), false);
            first->wait(-1);
            second->wait(-1);
        }
        waits->wait(-1);
        EXPECT_EQ(values(halves[0]), std::vector<float>(32, 1));
        EXPECT_EQ(values(halves[1]), std::vector<float>(32, 2));
    });
}

TEST(GroupMemory, ResultsOfAnyStridesMayBeWrittenInTwoGroups)
{
    in_two_groups([](Group &one, Group &other) {
        const Tensor base = filled(64, 1);
        const int64_t shape[] = {16}, strides[] = {2};
        const Tensor halves[] = {make_view(*base, shape, strides, 0),
                                 make_view(*base, shape, strides, 32)};
        for (int i = 0; i < 50; ++i) {
            const Ref<Work> first = one.run(reduce_all(halves[0], YOKE_REDUCE_MAX), true);
            const Ref<Work> second = other.run(reduce_all(halves[1], YOKE_REDUCE_MAX), true);
            first->wait(-1);
            second->wait(-1);
        }
    });
}

Tensor column_of(const Tensor &matrix, int64_t at)
{
    return make_view(*matrix, {matrix->shape_, 1}, matrix->strides_, at);
}

TEST(GroupMemory, ColumnsOfOneTensorMayBeInUseInTwoGroups)
{
    in_two_groups([](Group &one, Group &other) {
        const Tensor matrix = ops::reshape(*filled(64, 1), Dims{16, 4});
        const Tensor columns[] = {column_of(matrix, 0), column_of(matrix, 2)};
        for (int i = 0; i < 50; ++i) {
            const Ref<Work> first = one.run(reduce_all(columns[0], YOKE_REDUCE_MAX), true);
            const Ref<Work> second = other.run(reduce_all(columns[1], YOKE_REDUCE_MAX), true);
            one.run(reduce_all(column_of(matrix, 1), YOKE_REDUCE_MAX), false);
            first->wait(-1);
            second->wait(-1);
        }
    });
}

// Expects an error of rank 0's call, which waits for the other rank while `meanwhile` works on the first half of the
// storage.
void expect_error_after(
    const std::function<void(std::vector<Ref<Group>> &, const Tensor &)> &meanwhile, int64_t offset,
    const char *writer)
{
    std::vector<Ref<Group>> ones = init_threads(2, 0, kCall), others = init_threads(2, 0, kCall);
    const Tensor base = filled(8, 1);
    const Ref<Work> work = others[0]->run(reduce_all(view_of(base, offset, 4)), true);
    meanwhile(ones, base);
    others[1]->run(reduce_all(filled(4, 1)), false);
    expect_error(YOKE_E_STATE, {"all_reduce", writer, " wrote ", "was running"},
                 [&] { work->wait(-1); });
}

void reduce_first_half(std::vector<Ref<Group>> &groups, const Tensor &base)
{
    const auto told = each_rank(groups, [&](Group &group) {
        group.run(reduce_all(group.rank() == 0 ? view_of(base, 0, 4) : filled(4, 1)), false);
    });
    EXPECT_EQ(told, std::vector<std::string>(2));
}

TEST(GroupMemory, AWriteOfTheScriptsIsFoundBesideThoseOfAnotherGroup)
{
    const auto write = [](std::vector<Ref<Group>> &groups, const Tensor &base) {
        reduce_first_half(groups, base);
        base->storage->note_written("fill_");
        reduce_first_half(groups, base);
    };
    expect_error_after(write, 4, "");
}

TEST(GroupMemory, TheSameElementsInTwoGroupsAreAnError)
{
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP()
        << "both groups write the same elements, which is a race; the race is the tested mistake";
#endif
    expect_error_after(reduce_first_half, 2, "all_reduce");
    expect_error_after(reduce_first_half, 0, "all_reduce");
}

}  // namespace
}  // namespace yoke::test
