// model.h: a model of some vectors whose gradients a group of threads reduces.
#pragma once

#include "core/autograd/backward.h"
#include "core/parallel/reducer.h"
#include "tests/core/comm/threads.h"

namespace yoke::test {

// Model of a few vectors: the loss is the sum of scale_i * x_i * p_i over the used vectors.
struct Model {
    std::vector<Tensor> params;
    std::shared_ptr<Reducer> reducer;
    std::string compression;
    BucketHook hook;

    explicit Model(const std::vector<int64_t> &lengths, yoke_dtype dtype = YOKE_F64)
    {
        for (const int64_t length : lengths) {
            const int64_t shape[] = {length};
            params.push_back(ops::full(shape, 1.0, dtype));
            set_requires_grad(*params.back(), true);
        }
    }
    ~Model()
    {
        if (reducer) reducer->detach();
    }
    void join(const Ref<Group> &group, BucketSizes sizes = {})
    {
        std::vector<ModuleTensor> named;
        for (size_t i = 0; i < params.size(); ++i)
            named.push_back({"p" + std::to_string(i), params[i]});
        reducer = Reducer::make(group, std::move(named), {}, {sizes, compression, hook});
    }
    // The gradient of params[i] is factors[i]; 0: it is not used.
    void go_back(const std::vector<double> &factors) const
    {
        const Tensor made = loss(factors);
        yoke_tensor *root = made.get();
        backward({&root, 1}, {}, false);
    }
    Tensor loss(const std::vector<double> &factors) const
    {
        Tensor loss = ops::full({}, 0.0, params[0]->dtype);
        for (size_t i = 0; i < params.size(); ++i)
            if (factors[i] != 0)
                loss = ops::add(*loss, *ops::sum(*ops::mul(*params[i], factors[i])));
        return loss;
    }
    std::vector<double> grads() const
    {
        std::vector<double> first;
        for (const Tensor &param : params) {
            const Tensor grad = grad_of(*param, "a test");
            if (!grad.present()) {
                first.push_back(-1);
                continue;
            }
            EXPECT_TRUE(same(grad->shape(), param->shape()));
            const Tensor wide = ops::cast(*grad, YOKE_F64);
            std::vector<double> all(static_cast<size_t>(grad->numel));
            copy_to_host(*wide, all.data(), wide->nbytes(), "a test");
            for (const double each : all) EXPECT_EQ(each, all[0]);
            first.push_back(all[0]);
        }
        return first;
    }
    void forget_grads() const
    {
        for (const Tensor &each : params) set_grad_of(*each, nullptr, "a test");
    }
};

using Values = std::vector<double>;

inline void on_ranks(int32_t size, const std::function<void(const Ref<Group> &)> &run)
{
    std::vector<Ref<Group>> groups = init_threads(size, 20, kCall);
    const auto told = each_rank(groups, [&](Group &group) { run(Ref<Group>::share(&group)); });
    EXPECT_EQ(told, std::vector<std::string>(static_cast<size_t>(size)));
}

inline constexpr BucketSizes kSmall{64, 128};

}  // namespace yoke::test
