// Convolutions through cuDNN: conditions, and messages if cuDNN is not used.
#include <fstream>
#include <sstream>

#include "cudnn_runs.h"
#include "tests/backend/launch.h"
#include "tests/core/fresh_process.h"

namespace yoke::test {

namespace {

// Convolves ones by ones, 3 x 3, on the default stream; returns the value in the middle.
template <class T>
double convolve(const Module &module, void *device, uint32_t flags = 0,
                uint64_t workspace_limit = 256 << 20)
{
    const std::vector<T> ones(32, T(1));
    std::vector<T> result(32);
    void *x = nullptr, *out = nullptr;
    const uint64_t bytes = 32 * sizeof(T);
    EXPECT_EQ(module->alloc(device, bytes + 64 * sizeof(T), &x), YOKE_OK);
    EXPECT_EQ(module->alloc(device, bytes, &out), YOKE_OK);
    for (int half = 0; half < 3; ++half)
        EXPECT_EQ(module->copy(device, static_cast<T *>(x) + 32 * half, ones.data(), bytes,
                               YOKE_COPY_HOST_TO_DEVICE, nullptr),
                  YOKE_OK);
    EXPECT_EQ(Record(YOKE_OP__CONV, device)
                  .in(static_cast<const T *>(x), {1, 2, 4, 4}, std::vector<int64_t>{32, 1, 8, 2})
                  .in(static_cast<const T *>(x) + 32, {2, 2, 3, 3})
                  .absent()
                  .out(static_cast<T *>(out), {1, 2, 4, 4}, std::vector<int64_t>{32, 1, 8, 2})
                  .axes({1, 1, 1, 1, 1, 1})
                  .param(int64_t{1})
                  .allow(flags)
                  .limit_workspace(workspace_limit)
                  .run(*Module::table()),
              YOKE_OK)
        << failure().message;
    EXPECT_EQ(module->copy(device, result.data(), out, bytes, YOKE_COPY_DEVICE_TO_HOST, nullptr),
              YOKE_OK);
    EXPECT_EQ(module->device_synchronize(device), YOKE_OK);
    EXPECT_EQ(module->free(device, x, 0), YOKE_OK);
    EXPECT_EQ(module->free(device, out, 0), YOKE_OK);
    return static_cast<double>(result[10]);  // the first channel of row 1, column 1
}

bool is_mapped(const char *name)
{
    std::ostringstream maps;
    maps << std::ifstream("/proc/self/maps").rdbuf();
    return maps.str().find(name) != std::string::npos;
}

}  // namespace

TEST(Convolutions, GoThroughCudnn)
{
    in_fresh_process([] {
        const Module module;
        void *device = Module::open();
        EXPECT_EQ(cudnn_runs(false), -1) << "before the first";
        EXPECT_EQ(convolve<float>(module, device), 18);
        EXPECT_EQ(cudnn_runs(false), 1);
        EXPECT_EQ(convolve<float>(module, device, YOKE_LAUNCH_TF32), 18);
        EXPECT_EQ(convolve<float>(module, device), 18);
        EXPECT_EQ(cudnn_runs(false), 2);
        EXPECT_EQ(cudnn_runs(true), 1);
        EXPECT_EQ(convolve<double>(module, device), 18);
        EXPECT_EQ(cudnn_runs(false), 2) << "float64 is for the own kernels";
        module->device_close(device);
        EXPECT_EQ(Module::held(), "");
        EXPECT_EQ(Module::logged(), "");
    });
}

TEST(Convolutions, LeaveCudnnUnmappedWhereLaunchesForbidIt)
{
    in_fresh_process([] {
        const Module module;
        void *device = Module::open(), *stream = nullptr, *graph = nullptr;
        EXPECT_EQ(convolve<float>(module, device, YOKE_LAUNCH_CUDNN_OFF), 18);
        EXPECT_EQ(module->stream_create(device, 0, &stream), YOKE_OK);
        EXPECT_EQ(module->graph_begin(device, stream, YOKE_LAUNCH_CUDNN_OFF), YOKE_OK);
        EXPECT_EQ(module->graph_end(device, stream, &graph), YOKE_OK);
        EXPECT_FALSE(is_mapped("libcudnn") || is_mapped("libnvrtc"));
        EXPECT_EQ(convolve<float>(module, device), 18);
        EXPECT_TRUE(is_mapped("libcudnn") && is_mapped("libnvrtc"));
        EXPECT_EQ(cudnn_runs(false), 1);
        EXPECT_EQ(convolve<float>(module, device, YOKE_LAUNCH_CUDNN_OFF), 18);
        EXPECT_EQ(cudnn_runs(false), 1) << "though it is there";
    });
}

// The fake's engines, in order: 0 is not deterministic; 2 and 3 need 4096 and 8192 bytes, 4 needs none; 3 and 4 work
// without tensor cores.
TEST(Convolutions, TakeThePlansThatTheirLaunchesAllow)
{
    in_fresh_process([] {
        const Module module;
        void *device = Module::open();
        const auto expect_engine = [&](int engine, uint32_t flags, uint64_t limit) {
            for (int time = 1; time <= 2; ++time) {  // first by a new plan, then by a found plan
                const int before = cudnn_runs_of(engine);
                EXPECT_EQ(convolve<float>(module, device, flags, limit), 18);
                EXPECT_EQ(cudnn_runs_of(engine), std::max(before, 0) + 1) << engine;
            }
        };
        constexpr uint32_t kTf32 = YOKE_LAUNCH_TF32, kAny = YOKE_LAUNCH_CUDNN_NONDETERMINISTIC;
        expect_engine(2, kTf32, 8192);
        expect_engine(2, kTf32 | kAny, 8192);  // cuDNN's first in order is as fast
        expect_engine(3, 0, 8192);
        expect_engine(3, kAny, 8192);
        expect_engine(3, 0, uint64_t{1} << 63);
        expect_engine(4, 0, 8191);
        expect_engine(4, kTf32, 0);
        expect_engine(2, kTf32, 4096);
        module->device_close(device);
        EXPECT_EQ(Module::logged(), "");
    });
}

TEST(Convolutions, AskForCudnnByItsNameAlone)
{
    in_fresh_process([] {
        const Module module;
        int64_t version = -1;
        char why[256] = "?";
        EXPECT_EQ(module->engine("cufft", &version, why, sizeof why), YOKE_E_UNSUPPORTED);
        EXPECT_NE(failure().message.find("'cufft'"), std::string::npos);
        EXPECT_EQ(version, -1);
        EXPECT_STREQ(why, "?");
        EXPECT_EQ(cudnn_runs(false), -1);
        EXPECT_EQ(module->engine("cudnn", &version, why, sizeof why), YOKE_OK);
        EXPECT_GE(version, 90800);
        EXPECT_STREQ(why, "");
        EXPECT_EQ(cudnn_runs(false), 0);
    });
    in_fresh_process([] {
        const Module module;
        ASSERT_TRUE(dlopen(CUDNN_COPIES "/whole/libcudnn_heuristic.so.9", RTLD_NOW)) << dlerror();
        int64_t version = -1;
        char why[8192] = "", cut[16] = "";
        EXPECT_EQ(module->engine("cudnn", &version, why, sizeof why), YOKE_OK);
        EXPECT_EQ(version, 0);
        EXPECT_NE(std::string(why).find("two copies of cuDNN"), std::string::npos) << why;
        EXPECT_EQ(module->engine("cudnn", &version, cut, sizeof cut), YOKE_OK);
        EXPECT_EQ(cut, std::string(why, 15));
    });
}

TEST(Convolutions, AreDoneByTheOwnKernelsWithOneWarningWhereThereIsNoEngine)
{
    in_fresh_process([] {
        setenv("FAKE_CUDNN_ENGINES", "0", 1);
        const Module module;
        void *device = Module::open();
        for (int time = 0; time < 2; ++time) EXPECT_EQ(convolve<float>(module, device), 18);
        EXPECT_EQ(cudnn_runs(false), 0);
        const std::string log = Module::logged();
        const size_t first = log.find(
            "cuda:0: cuDNN has no engine for the convolution of 1 x 2 x 4 x 4 by 2 x 2 x 3 x 3");
        EXPECT_NE(first, log.npos) << log;
        EXPECT_EQ(log.find("no engine", first + 40), log.npos) << log;
        module->device_close(device);
        EXPECT_EQ(Module::held(), "");
    });
}

// If a plan fails during its creation, the next plan is used.
TEST(Convolutions, TellWhatServesWhereACallFails)
{
    const auto expect_told = [](int n, bool has_next) {
        in_fresh_process([&] {
            constexpr int kExecutionFailed = 5000;
            const std::string fault = "cudnnBackendFinalize@" + std::to_string(n) + "=" +
                                      std::to_string(kExecutionFailed);
            setenv("FAKE_CUDA_FAIL", fault.c_str(), 1);
            const Module module;
            EXPECT_EQ(convolve<float>(module, Module::open()), 18) << fault;
            EXPECT_EQ(cudnn_runs(false), has_next) << fault;
            const char *serves = has_next ? "the next plan is used" : "own kernels are used";
            EXPECT_NE(Module::logged().find(serves), std::string::npos) << Module::logged();
        });
    };
    expect_told(1, false);  // the first tensor
    expect_told(8, true);   // the first plan
}

TEST(Convolutions, AreDoneByTheOwnKernelsWhereThereIsNoMemoryForCudnns)
{
    const auto expect_own = [](const char *fails) {
        in_fresh_process([&] {
            setenv("FAKE_CUDA_FAIL", fails, 1);
            setenv("FAKE_CUDNN_ENGINES", "4", 1);
            const Module module;
            void *device = Module::open();
            EXPECT_EQ(convolve<float>(module, device), 18);
            EXPECT_EQ(cudnn_runs(false), 0) << fails;
            const std::string log = Module::logged();
            EXPECT_NE(log.find("own kernels are used"), log.npos) << log;
            EXPECT_EQ(log.find("no engine"), log.npos) << log;
            EXPECT_EQ(convolve<float>(module, device), 18);
            EXPECT_EQ(cudnn_runs(false), 1) << fails;
            module->device_close(device);
            EXPECT_EQ(Module::held(), "");
        });
    };
    expect_own("cudaMalloc@3=2");  // after x and out: the weight in cuDNN's order
    expect_own("cudaMalloc@4=2");  // the workspace of the only usable plan
}

TEST(Convolutions, AreDoneByTheOwnKernelsWithOneWarningWhereThereIsNoCudnn)
{
    in_fresh_process([] {
        const Module module;
        void *device = Module::open();
        // A part of another copy: what makes cuDNN refuse whichever is found.
        ASSERT_TRUE(dlopen(CUDNN_COPIES "/whole/libcudnn_heuristic.so.9", RTLD_NOW)) << dlerror();
        for (int time = 0; time < 2; ++time) EXPECT_EQ(convolve<float>(module, device), 18);
        const std::string log = Module::logged();
        const size_t first = log.find("this process has loaded another copy of cuDNN");
        EXPECT_NE(first, log.npos) << log;
        EXPECT_EQ(log.find("another copy", first + 40), log.npos) << log;
        module->device_close(device);
    });
}

}  // namespace yoke::test
