// Buffers that ranks take from a single rank: core/parallel/module_values.cpp.
#include "tests/core/comm/model.h"

namespace yoke::test {
namespace {

struct WithBuffers : Model {
    std::vector<Tensor> buffers;

    WithBuffers(const Ref<Group> &group, std::vector<Tensor> some)
        : Model({4}, YOKE_F32), buffers(std::move(some))
    {
        std::vector<ModuleTensor> named;
        for (size_t i = 0; i < buffers.size(); ++i)
            named.push_back({"b" + std::to_string(i), buffers[i]});
        reducer = Reducer::make(group, {{"p", params[0]}}, std::move(named), {});
    }
    // Saves buffers[0].
    Tensor loss() const { return ops::sum(*ops::mul(*params[0], *buffers[0])); }
    static void go_back_from(const Tensor &loss, bool keeps_graph = false)
    {
        yoke_tensor *root = loss.get();
        backward({&root, 1}, {}, keeps_graph);
    }
};

void write(const Tensor &buffer, double value)
{
    const NoGrad no_grad;
    ops::fill_(*buffer, value);
}

TEST(Buffers, ThatAreAsTheyWereLeaveOtherGraphsWhole)
{
    on_ranks(2, [](const Ref<Group> &group) {
        const WithBuffers small(group, {filled(4, 3), filled(4, 5)});
        const Tensor first = small.loss(), second = small.loss();
        write(small.buffers[1], group->rank() + 8.);
        small.go_back_from(first, true);
        EXPECT_EQ(values(small.buffers[1]), (std::vector<float>{8, 8, 8, 8}));
        small.go_back_from(first);
        small.go_back_from(second);
        EXPECT_EQ(values(grad_of(*small.params[0], "a test")), (std::vector<float>{9, 9, 9, 9}));
    });
}

TEST(Buffers, OfAnySizeAreComparedWithoutBeingWritten)
{
    on_ranks(2, [](const Ref<Group> &group) {
        const int64_t large[] = {3, 300000}, wide[] = {600000, 4};
        const WithBuffers model(group, {filled(4, 1), ops::full(large, 2.0, YOKE_F32),
                                        ops::transpose(*ops::full(wide, 3.0, YOKE_F32), 0, 1)});
        const auto versions = [&] {
            std::vector<uint32_t> all;
            for (const Tensor &each : model.buffers) all.push_back(each->storage->version);
            return all;
        };
        std::vector<uint32_t> before = versions();
        model.go_back_from(model.loss());
        EXPECT_EQ(versions(), before);
        const int64_t one[] = {1};
        write(make_view(*model.buffers[2], one, nullptr, 4 * 599999 + 3), group->rank() + 6.);
        before = versions();
        model.go_back_from(model.loss());
        before[2] += group->rank() ? 1 : 0;
        EXPECT_EQ(versions(), before);
        EXPECT_EQ(reinterpret_cast<const float *>(model.buffers[2]->data)[4 * 599999 + 3], 6);
    });
}

TEST(Buffers, ThatAreExpandedAreWrittenOnce)
{
    on_ranks(2, [](const Ref<Group> &group) {
        const Tensor row = filled(4, static_cast<float>(group->rank() + 1));
        const Tensor scalar = ops::full({}, group->rank() + 1., YOKE_I64);
        const WithBuffers model(
            group, {filled(4, 1), ops::expand(*row, {{3, 4}}), ops::expand(*scalar, {{2, 5}})});
        EXPECT_EQ(values(row), (std::vector<float>{1, 1, 1, 1}));
        EXPECT_EQ(*reinterpret_cast<const int64_t *>(scalar->data), 1);
        write(row, group->rank() + 5.);
        write(scalar, group->rank() + 6.);
        model.go_back_from(model.loss());
        EXPECT_EQ(values(row), (std::vector<float>{5, 5, 5, 5}));
        EXPECT_EQ(*reinterpret_cast<const int64_t *>(scalar->data), 6);
    });
}

}  // namespace
}  // namespace yoke::test
