// Calls of cuDNN, and calls for a convolution, fail once each; see faults.h.
#include "faults.h"
#include "tests/backend/launch.h"

namespace yoke::test {

// Forward, with a bias, by a new plan and by a found plan, on a new stream; then by data and by weight. If cuDNN
// fails before its work, Yoke's own kernels must give equal results.
TEST(Faults, OfConvolutions)
{
    expect_every_call_may_fail(
        [](Scenario &s) {
            float *ones = s.upload(std::vector<float>(64, 1)),
                  *out = s.upload(std::vector<float>(64));
            const std::vector<int64_t> window = {1, 1, 1, 1, 1, 1}, size = {4, 4},
                                       image = {1, 2, 4, 4}, last = {32, 1, 8, 2},
                                       weight = {2, 2, 3, 3}, three = {3, 3};
            s.wait();  // for what was uploaded on the default stream
            void *stream = s.stream();
            for (int time = 0; time < 2; ++time)
                s.step([&] {
                    return Record(YOKE_OP__CONV, s.device, stream)
                        .in(ones, image, last)
                        .in(ones, weight)
                        .in(ones, {2})
                        .out(out, image, last)
                        .axes(window)
                        .param(int64_t{1})
                        .run(s.table());
                });
            s.wait(stream);
            s.step([&] { return s.table().stream_destroy(s.device, stream); });
            EXPECT_EQ(s.download(out, 64)[0], 2 * 4 + 1);
            out = s.upload(std::vector<float>(64));
            s.step([&] {
                return Record(YOKE_OP__CONV_DATA, s.device)
                    .in(ones, image, last)
                    .in(ones, weight)
                    .absent()
                    .out(out, image, last)
                    .axes(size)
                    .axes(window)
                    .param(int64_t{1})
                    .run(s.table());
            });
            EXPECT_EQ(s.download(out, 64)[0], 2 * 4);
            out = s.upload(std::vector<float>(64));
            s.step([&] {
                return Record(YOKE_OP__CONV_WEIGHT, s.device)
                    .in(ones, image, last)
                    .in(ones, image, last)
                    .out(out, weight)
                    .axes(three)
                    .axes(window)
                    .param(int64_t{1})
                    .run(s.table());
            });
            EXPECT_EQ(s.download(out, 64)[0], 9);
            s.wait();
            s.free(ones, 256);
        },
        {"cudnnCreate", "cudnnDestroy", "cudnnSetStream", "cudnnBackendCreateDescriptor",
         "cudnnBackendSetAttribute", "cudnnBackendGetAttribute", "cudnnBackendFinalize",
         "cudnnBackendExecute", "cuDNN's kernel", "cudaMalloc"},
        kMostOfMany);
}

// The gradient by data onto a bias, by the quickest plan. Earlier trials must leave no values there.
TEST(Faults, OfABenchmark)
{
    setenv("FAKE_CUDA_TICKS", "1", 1);  // so that as many calls are made each time
    setenv("FAKE_CUDNN_MICROSECONDS", "500", 1);
    expect_every_call_may_fail(
        [](Scenario &s) {
            float *ones = s.upload(std::vector<float>(64, 1)),
                  *out = s.upload(std::vector<float>(64));
            const std::vector<int64_t> image = {1, 2, 4, 4}, last = {32, 1, 8, 2};
            s.step([&] {
                return Record(YOKE_OP__CONV_DATA, s.device)
                    .in(ones, image, last)
                    .in(ones, {2, 2, 3, 3})
                    .in(ones, {2})
                    .out(out, image, last)
                    .axes({4, 4})
                    .axes({1, 1, 1, 1, 1, 1})
                    .param(int64_t{1})
                    .allow(YOKE_LAUNCH_CUDNN_BENCHMARK)
                    .run(s.table());
            });
            EXPECT_EQ(s.download(out, 64)[0], 2 * 4 + 1);
            s.wait();
            s.free(ones, 256);
        },
        {"cudaStreamIsCapturing", "cudaEventCreateWithFlags", "cudaEventRecord",
         "cudaEventSynchronize", "cudaEventElapsedTime", "cudaEventDestroy", "cudnnBackendExecute",
         "cuDNN's kernel"},
        kMostOfMany / 3);
    unsetenv("FAKE_CUDNN_MICROSECONDS");
    unsetenv("FAKE_CUDA_TICKS");
}

}  // namespace yoke::test
