// Bytes that the core hands from rank to rank: core/comm/exchange.cpp.
#include "core/comm/exchange.h"

#include "tests/core/comm/threads.h"

namespace yoke::test {
namespace {

constexpr const char *kMine = "a test";

TEST(Exchange, NumbersComeInTheOrderOfRanks)
{
    std::vector<Ref<Group>> groups = init_threads(3, 20, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        const int64_t own = group.rank();
        EXPECT_EQ(gathered(group, {own, 10 * own}, kMine),
                  (std::vector<int64_t>{0, 0, 1, 10, 2, 20}));
        EXPECT_EQ(from_rank(group, 2, {own, -own}, kMine), (std::vector<int64_t>{2, -2}));
        EXPECT_TRUE(from_rank(group, 1, {}, kMine).empty());
    });
    EXPECT_EQ(told, std::vector<std::string>(3));
}

TEST(Exchange, ATextIsCutWhereItsPlaceEnds)
{
    for (const char *text : {"", "seven..", "eight...", "nine....."}) {
        const std::vector<int64_t> numbers = packed(text, 2);
        EXPECT_EQ(unpacked(numbers.data(), 2), text);
        EXPECT_EQ(unpacked(packed(text, 1).data(), 1), std::string(text).substr(0, 8));
    }
}

Ref<State> tree()
{
    const Tensor shared = filled(3, 5), wide = ops::cast(*filled(4, 2), YOKE_BF16);
    const int64_t turned[] = {2, 3}, strides[] = {1, 2}, none[] = {0, 2};
    const Tensor across = make_view(*filled(6, 7), turned, strides, 0);
    reinterpret_cast<float *>(across->data)[1] = 8;  // row 1, column 0
    const Ref<State> root = State::make(StateDict());
    root->put("shared", State::make(shared), kMine);
    root->put("again", State::make(shared), kMine);
    root->put("wide", State::make(wide), kMine);
    root->put("across", State::make(across), kMine);
    root->put("empty", State::make(make_tensor(open_device("cpu"), YOKE_I64, none, kMine)), kMine);
    const Ref<State> list = State::make(StateList{{}, true});
    for (const State::Value &each : {State::Value(), State::Value(true), State::Value(int64_t{-3}),
                                     State::Value(0.1), State::Value(std::string("t\xc3\xa4xt"))})
        list->append(State::make(each), kMine);
    root->put(int64_t{7}, list, kMine);
    return root;
}

void expect_tree(State &root)
{
    const auto tensor = [&](const char *path) { return *root.at(path, kMine).get_if<Tensor>(); };
    EXPECT_EQ(tensor("shared").get(), tensor("again").get());
    EXPECT_EQ(values(tensor("shared")), std::vector<float>(3, 5));
    EXPECT_EQ(tensor("wide")->dtype, YOKE_BF16);
    EXPECT_EQ(values(ops::cast(*tensor("wide"), YOKE_F32)), std::vector<float>(4, 2));
    EXPECT_EQ(values(ops::contiguous(*tensor("across"))), (std::vector<float>{7, 7, 7, 8, 7, 7}));
    EXPECT_TRUE(same(tensor("empty")->shape(), std::vector<int64_t>{0, 2}));
    const auto *list = root.at("7", kMine).get_if<StateList>();
    ASSERT_TRUE(list && list->is_tuple && list->items.size() == 5);
    EXPECT_EQ(list->items[0]->kind(), StateKind::kNone);
    EXPECT_EQ(*list->items[1]->get_if<bool>(), true);
    EXPECT_EQ(*list->items[2]->get_if<int64_t>(), -3);
    EXPECT_EQ(*list->items[3]->get_if<double>(), 0.1);
    EXPECT_EQ(*list->items[4]->get_if<std::string>(), "t\xc3\xa4xt");
}

TEST(Exchange, ATreeComesWithAllThatIsInIt)
{
    for (const int32_t root : {0, 2}) {
        std::vector<Ref<Group>> groups = init_threads(3, 20, kCall);
        const auto told = each_rank(groups, [root](Group &group) {
            const Ref<State> mine = group.rank() == root ? tree() : Ref<State>();
            const Ref<State> come = state_from(group, root, mine, kMine);
            expect_tree(*come);
            EXPECT_EQ(come.get() == mine.get(), group.rank() == root);
            const Ref<State> none = state_from(group, root, State::make(), kMine);
            EXPECT_EQ(none->kind(), StateKind::kNone);
        });
        EXPECT_EQ(told, std::vector<std::string>(3));
    }
}

}  // namespace
}  // namespace yoke::test
