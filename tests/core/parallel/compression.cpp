// Buckets that pass in fewer bytes: core/parallel/compression.cpp, powersgd.cpp.
#include "core/autograd/backward.h"
#include "core/parallel/powersgd_math.h"
#include "core/parallel/reducer.h"
#include "tests/core/comm/threads.h"

#include <cmath>

namespace yoke::test {
namespace {

// A matrix of 24 x 32 and a vector of 5, with gradients set by the test.
struct Matrix {
    Tensor weight, bias;
    std::shared_ptr<Reducer> reducer;

    Matrix(const Ref<Group> &group, const std::string &compression, BucketHook hook = {})
    {
        const int64_t shape[] = {24, 32}, length[] = {5};
        weight = ops::full(shape, 0.0, YOKE_F32);
        bias = ops::full(length, 0.0, YOKE_F32);
        for (const Tensor &each : {weight, bias}) set_requires_grad(*each, true);
        reducer = Reducer::make(group, {{"weight", weight}, {"bias", bias}}, {},
                                {{}, compression, std::move(hook)});
    }
    ~Matrix() { reducer->detach(); }

    static Tensor outer(double scale)
    {
        const int64_t shape[] = {24, 32};
        Tensor made = make_tensor(open_device("cpu"), YOKE_F32, shape, kCall);
        for (int64_t i = 0; i < 24; ++i)
            for (int64_t k = 0; k < 32; ++k)
                reinterpret_cast<float *>(made->data)[i * 32 + k] =
                    static_cast<float>(scale * std::sin(1 + static_cast<double>(i)) *
                                       std::cos(2 + 3 * static_cast<double>(k)));
        return made;
    }
    // The gradients are `of_weight` and `of_bias` in each element.
    std::vector<float> go_back(const Tensor &of_weight, double of_bias)
    {
        const Tensor loss = ops::add(*ops::sum(*ops::mul(*weight, *of_weight)),
                                     *ops::sum(*ops::mul(*bias, of_bias)));
        yoke_tensor *root = loss.get();
        backward({&root, 1}, {}, false);
        std::vector<float> grads = values(grad_of(*weight, kCall));
        grads.push_back(values(grad_of(*bias, kCall))[4]);
        for (const Tensor &each : {weight, bias}) set_grad_of(*each, nullptr, kCall);
        return grads;
    }
};

CompressionState state_of(const Matrix &model)
{
    return read_compression_state(*model.reducer->comm_state(), kCall);
}

void on_ranks(int32_t size, const std::function<void(const Ref<Group> &)> &run)
{
    std::vector<Ref<Group>> groups = init_threads(size, 20, kCall);
    const auto told = each_rank(groups, [&](Group &group) { run(Ref<Group>::share(&group)); });
    EXPECT_EQ(told, std::vector<std::string>(static_cast<size_t>(size)));
}

void expect_near(const std::vector<float> &found, const std::vector<float> &expected,
                 double tolerance)
{
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], tolerance) << i;
}

// Returns the expected result of a process: the mean of scales 1 and 3 is 2.
std::vector<float> mean(double scale, double bias)
{
    std::vector<float> all = values(Matrix::outer(scale));
    all.push_back(static_cast<float>(bias));
    return all;
}

TEST(Compression, HalvesWhatPasses)
{
    on_ranks(2, [](const Ref<Group> &group) {
        for (const auto &[kind, tolerance] : {std::pair("fp16", 2e-3), std::pair("bf16", 2e-2)}) {
            Matrix model(group, kind);
            const double own = 1 + 2 * group->rank();
            for (int step = 0; step < 3; ++step)
                expect_near(model.go_back(Matrix::outer(own), own), mean(2, 2), tolerance);
        }
        uint64_t least = UINT64_MAX;
        for (const CallRecord &each : group->records())
            if (each.signature.op == YOKE_COMM_ALL_REDUCE && each.signature.dtype == YOKE_F16)
                least = std::min<uint64_t>(least, each.signature.count);
        EXPECT_GE(least, 24u * 32 + 5) << "the buckets passed as float16";
        EXPECT_NE(least, UINT64_MAX);
    });
}

// No host shows it: the engine of the host forms sums of 16-bit floats in float32 anyway.
TEST(Compression, ReduceDtypeIsAskedForBucketsOf16BitFloatsAlone)
{
    const int64_t shape[] = {4};
    for (const yoke_dtype dtype : {YOKE_F16, YOKE_BF16, YOKE_F32, YOKE_F64}) {
        const Tensor bucket = make_tensor(open_device("cpu"), dtype, shape, "backward");
        const bool is_small = item_size(dtype) == 2;
        EXPECT_EQ(detail::mean_of(bucket, YOKE_COMM_IN_F32).flags, is_small ? YOKE_COMM_IN_F32 : 0)
            << name(dtype);
    }
}

TEST(PowerSgd, GivesTheMeanOfMatricesOfItsRank)
{
    on_ranks(2, [](const Ref<Group> &group) {
        Matrix model(group, "powersgd:start=2");
        const double own = 1 + 2 * group->rank();
        for (int step = 0; step < 6; ++step)
            expect_near(model.go_back(Matrix::outer(own), own), mean(2, 2), 1e-5);
        EXPECT_EQ(state_of(model).steps, 6);
    });
}

// The sum of `rank` products of a column and a row, all of them of the scale.
Tensor of_rank(int rank, int seed, double scale)
{
    Tensor sum = Matrix::outer(0);
    for (int i = 0; i < rank; ++i) {
        const Tensor columns = normal_numbers(*sum->device, YOKE_F32, {24, 1}, uint64_t(seed + i));
        const Tensor rows = normal_numbers(*sum->device, YOKE_F32, {1, 32}, uint64_t(seed - 1 - i));
        sum = ops::add(*sum, *ops::matmul(*columns, *rows));
    }
    return ops::mul(*sum, scale);
}

// The largest difference, by the largest number of what is expected.
double relative_error(const std::vector<float> &found, const Tensor &expected)
{
    const std::vector<float> all = values(expected);
    double error = 0, largest = 0;
    for (size_t i = 0; i < all.size(); ++i) {
        error = std::max(error, std::abs(double(found[i]) - double(all[i])));
        largest = std::max(largest, std::abs(double(all[i])));
    }
    return error / largest;
}

// Each step has matrices unrelated to the matrices of the step before.
TEST(PowerSgd, GivesWhatIsOfItsRankWhateverItsScale)
{
    on_ranks(2, [](const Ref<Group> &group) {
        for (const double scale : {1., 1e-3, 1e-6, 1e-30, 1e3, 1e30})
            for (const int rank : {1, 2, 3}) {
                Matrix model(group, "powersgd:rank=3,start=2,rate=1");
                for (int step = 0; step < 5; ++step) {
                    const Tensor gradient = of_rank(rank, 100 * step + 7, scale);
                    EXPECT_LT(relative_error(model.go_back(gradient, 1), gradient), 1e-4)
                        << "scale " << scale << " rank " << rank << " step " << step;
                }
            }
    });
}

TEST(PowerSgd, HasNoMoreColumnsThanAMatrix)
{
    on_ranks(2, [](const Ref<Group> &group) {
        Matrix model(group, "powersgd:rank=300,start=2,rate=0.5");
        for (int step = 0; step < 6; ++step) {
            const Tensor gradient = of_rank(24, 100 * step + 50, 1);
            EXPECT_LT(relative_error(model.go_back(gradient, 1), gradient), 1e-4) << step;
        }
        EXPECT_EQ(state_of(model).tensors.at("q/weight")->shape()[1], 24);
    });
}

// Covers a head that is unused at first: its result does not stay 0, and is the same in another process.
TEST(PowerSgd, BeginsAnewBehindAGradientOfZero)
{
    on_ranks(2, [](const Ref<Group> &group) {
        const std::string kind = "powersgd:rank=2,start=2,rate=1";
        Matrix model(group, kind), after(group, kind);
        for (int step = 0; step < 4; ++step) model.go_back(Matrix::outer(0), 1);
        after.reducer->load_comm_state(*model.reducer->comm_state());
        for (int step = 4; step < 7; ++step) {
            const Tensor gradient = of_rank(2, 100 * step, 1);
            const std::vector<float> found = model.go_back(gradient, 1);
            EXPECT_LT(relative_error(found, gradient), 1e-4) << step;
            EXPECT_EQ(after.go_back(gradient, 1), found);
        }
    });
}

// Later steps add the part that a step lost. So the sum of all steps equals the sum of the means, except for the last
// error.
TEST(PowerSgd, AddsWhatItLackedToTheNextStep)
{
    on_ranks(2, [](const Ref<Group> &group) {
        Matrix model(group, "powersgd:rank=1,start=2");
        const int64_t shape[] = {24, 32};
        Tensor full = make_tensor(open_device("cpu"), YOKE_F32, shape, kCall);
        for (int64_t i = 0; i < full->numel; ++i)
            reinterpret_cast<float *>(full->data)[i] = static_cast<float>(std::sin(double(i * i)));
        std::vector<double> sum(static_cast<size_t>(full->numel));
        constexpr int kSteps = 40;
        for (int step = 0; step < kSteps; ++step) {
            const std::vector<float> grads = model.go_back(full, 1);
            for (size_t i = 0; i < sum.size(); ++i) sum[i] += grads[i];
        }
        const CompressionState state = state_of(model);
        const std::vector<float> error = values(state.tensors.at("error/weight"));
        for (size_t i = 0; i < sum.size(); ++i)
            EXPECT_NEAR(sum[i] + error[i], kSteps * values(full)[i], 1e-3) << i;
    });
}

TEST(PowerSgd, GoesOnFromAStateWithTheSameBits)
{
    on_ranks(2, [](const Ref<Group> &group) {
        const std::string kind = "powersgd:rank=3,start=3,rate=1";
        const auto gradient = [&](int step) {
            return ops::add(*Matrix::outer(step + group->rank()),
                            *ops::sin(*Matrix::outer(7. * step + 1)));
        };
        Matrix whole(group, kind), before(group, kind);
        std::vector<float> expected;
        for (int step = 0; step < 8; ++step) expected = whole.go_back(gradient(step), step);
        for (int step = 0; step < 5; ++step) before.go_back(gradient(step), step);
        const Ref<State> told = before.reducer->comm_state();
        const State &state = *told;
        EXPECT_EQ(state_of(before).tensors.size(), 2u);
        Matrix after(group, kind);
        after.reducer->load_comm_state(state);
        std::vector<float> found;
        for (int step = 5; step < 8; ++step) found = after.go_back(gradient(step), step);
        EXPECT_EQ(found, expected);
        Matrix other(group, "powersgd:rank=2,start=3,rate=1"), plain(group, "bf16");
        expect_error(YOKE_E_VALUE, {"load_comm_state", "'q/weight'", "rank=2"},
                     [&] { other.reducer->load_comm_state(state); });
        expect_error(YOKE_E_VALUE, {"load_comm_state", "'error/weight'"},
                     [&] { plain.reducer->load_comm_state(state); });
        expect_error(YOKE_E_VALUE, {"load_comm_state", "a float", "'steps'"},
                     [&] { plain.reducer->load_comm_state(*State::make(1.5)); });
    });
}

TEST(Compression, RefusesWhatItDoesNotKnow)
{
    std::vector<Ref<Group>> groups = init_threads(1, 20, kCall);
    const auto refused = [&](const char *text, std::initializer_list<const char *> parts) {
        expect_error(YOKE_E_VALUE, parts, [&] { make_compression(text, groups[0]); });
    };
    refused("fp8", {"'compression' is 'fp8'", "'fp16', 'bf16' or powersgd"});
    refused("powersgd:speed=2", {"the key 'speed'", "rank, start and rate"});
    refused("powersgd:rank=4,rank=2", {"the key 'rank' twice in 'powersgd:rank=4,rank=2'"});
    refused("powersgd:start=3,rank=2,start=3", {"the key 'start' twice"});
    refused("powersgd:rank=0", {"rank=0", "1 or more"});
    refused("powersgd:rank=two", {"rank=two"});
    refused("powersgd:rank", {"rank="});
    refused("powersgd:start=1", {"start=1", "2 or more"});
    refused("powersgd:rate=-1", {"rate=-1", "above 0"});
    make_compression("powersgd", groups[0]);
    make_compression("powersgd:rank=4,start=10,rate=2", groups[0]);
}

TEST(Compression, AHookDoesWhatItLikesWithABucket)
{
    on_ranks(2, [](const Ref<Group> &group) {
        int buckets = 0;
        Matrix model(group, "", [&](const FullBucket &bucket) -> Ref<Work> {
            ++buckets;
            EXPECT_TRUE(bucket.is_last);
            return bucket.group.run(
                {YOKE_COMM_ALL_REDUCE, YOKE_REDUCE_SUM, -1, bucket.memory, bucket.memory}, true);
        });
        expect_near(model.go_back(Matrix::outer(1), 1), mean(2, 2), 1e-6);
        EXPECT_EQ(buckets, 1);
    });
}

}  // namespace
}  // namespace yoke::test
