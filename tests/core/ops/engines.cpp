// Limits of cuDNN reach a device with each launch, and stay with a graph. Also questions to cuDNN itself.
#include "core/ops/engines.h"

#include "core/ops/graph.h"
#include "core/ops/ops.h"
#include "core/select/select.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"
#include "tests/core/ops/values.h"

namespace yoke {

namespace {

using test::expect_error;
using test::fake;
using test::fake_device;
using test::in_fresh_process;

Tensor ones_on(Device &device)
{
    constexpr int64_t shape[] = {2, 2};
    return make_tensor(device, YOKE_F64, shape, "a test");
}

void expect_launch(uint32_t flags, uint32_t benchmark_limit, uint64_t workspace_limit)
{
    EXPECT_EQ(fake.launch_flags, flags);
    EXPECT_EQ(fake.benchmark_limit, benchmark_limit);
    EXPECT_EQ(fake.workspace_limit, workspace_limit);
}

constexpr uint32_t kAllFlags =
    YOKE_LAUNCH_CUDNN_OFF | YOKE_LAUNCH_CUDNN_BENCHMARK | YOKE_LAUNCH_CUDNN_NONDETERMINISTIC;

void set_all()
{
    set_cudnn_setting(CudnnSetting::kEnabled, 0);
    set_cudnn_setting(CudnnSetting::kBenchmark, 1);
    set_cudnn_setting(CudnnSetting::kBenchmarkLimit, 0);
    set_cudnn_setting(CudnnSetting::kDeterministic, 0);
    set_cudnn_setting(CudnnSetting::kWorkspaceLimit, INT64_MAX);
}

// ---- A fake cuda, with an engine or without -------------------------------------------------------------------------

int asked = 0;
yoke_status engine(const char *name, int64_t *version, char *why, uint64_t capacity)
{
    EXPECT_STREQ(name, "cudnn");
    if (++asked > 2) return test::fake_entries::told(YOKE_E_INTERNAL, "the fake was told to fail");
    *version = asked == 1 ? 91900 : 0;
    snprintf(why, capacity, "%s", asked == 1 ? "" : "it is gone");
    return YOKE_OK;
}
yoke_backend cuda = test::fake_table("cuda");
yoke_status get_cuda(const yoke_host *, const yoke_backend **out)
{
    *out = &cuda;
    return YOKE_OK;
}

}  // namespace

TEST(Engines, ALaunchSaysWhatCudnnMayDo)
{
    in_fresh_process([] {
        const Tensor x = ones_on(fake_device());
        ops::matmul(*x, *x);
        expect_launch(YOKE_LAUNCH_CUDNN_NONDETERMINISTIC, 10, 256 << 20);
        set_cudnn_setting(CudnnSetting::kDeterministic, 1);
        ops::matmul(*x, *x);
        expect_launch(0, 10, 256 << 20);
        set_all();
        ops::matmul(*x, *x);
        expect_launch(kAllFlags, 0, INT64_MAX);
        set_cudnn_setting(CudnnSetting::kEnabled, 7);
        set_cudnn_setting(CudnnSetting::kBenchmark, 0);
        ops::matmul(*x, *x);
        expect_launch(YOKE_LAUNCH_CUDNN_NONDETERMINISTIC, 0, INT64_MAX);
        EXPECT_EQ(cudnn_setting(CudnnSetting::kEnabled), 1);
        ops::add(*x, *x);  // cuDNN does not compute add
        expect_launch(0, 0, 0);
    });
}

TEST(Engines, AGraphKeepsWhatCudnnMightDoAtItsCapture)
{
    in_fresh_process([] {
        Device &device = fake_device();
        const Tensor x = ones_on(device);
        const auto graph = Ref<Graph>::adopt(new Graph(device));
        graph->begin();
        const Tensor y = ops::matmul(*x, *x);
        graph->end();
        set_all();
        ops::matmul(*x, *x);
        expect_launch(kAllFlags, 0, INT64_MAX);
        graph->replay();
        expect_launch(YOKE_LAUNCH_CUDNN_NONDETERMINISTIC, 10, 256 << 20);
    });
}

TEST(Engines, DeterministicAlgorithmsReachEveryLaunchAndForbidSumsInAnyOrder)
{
    in_fresh_process([] {
        const Tensor x = ones_on(fake_device());
        EXPECT_FALSE(uses_deterministic_algorithms());
        for (const bool wanted : {true, false, true}) {
            use_deterministic_algorithms(wanted);
            EXPECT_EQ(uses_deterministic_algorithms(), wanted);
            ops::matmul(*x, *x);
            EXPECT_EQ(fake.launch_flags,
                      wanted ? YOKE_LAUNCH_DETERMINISTIC : YOKE_LAUNCH_CUDNN_NONDETERMINISTIC);
            ops::add(*x, *x);
            EXPECT_EQ(fake.launch_flags, wanted ? YOKE_LAUNCH_DETERMINISTIC : 0);
        }
    });
    in_fresh_process([] {
        setenv("YOKE_DETERMINISTIC_ALGORITHMS", "1", 1);
        EXPECT_TRUE(uses_deterministic_algorithms());
    });
    in_fresh_process([] {
        setenv("YOKE_DETERMINISTIC_ALGORITHMS", "yes", 1);
        expect_error(YOKE_E_VALUE, {"YOKE_DETERMINISTIC_ALGORITHMS", "'yes'", "0 or 1"},
                     [] { uses_deterministic_algorithms(); });
    });
}

TEST(Engines, TheEnvironmentSaysWhatCudnnMayDoAtFirst)
{
    in_fresh_process([] {
        setenv("YOKE_CUDNN_ENABLED", "0", 1);
        setenv("YOKE_CUDNN_BENCHMARK", "1", 1);
        setenv("YOKE_CUDNN_BENCHMARK_LIMIT", "3", 1);
        setenv("YOKE_CUDNN_DETERMINISTIC", "1", 1);
        setenv("YOKE_CUDNN_WORKSPACE_LIMIT", "4096", 1);
        const Tensor x = ones_on(fake_device());
        ops::matmul(*x, *x);
        expect_launch(kAllFlags & ~YOKE_LAUNCH_CUDNN_NONDETERMINISTIC, 3, 4096);
    });
    in_fresh_process([] {
        setenv("YOKE_CUDNN_DETERMINISTIC", "perhaps", 1);
        expect_error(YOKE_E_VALUE, {"YOKE_CUDNN_DETERMINISTIC", "'perhaps'", "0 or 1"},
                     [] { cudnn_flags(); });
    });
}

TEST(Engines, ALimitThatIsNoneIsRefusedAndChangesNothing)
{
    expect_error(YOKE_E_VALUE, {"backends.cudnn", "benchmark_limit is -1", "0 for all"},
                 [] { set_cudnn_setting(CudnnSetting::kBenchmarkLimit, -1); });
    expect_error(YOKE_E_VALUE, {"benchmark_limit is 2147483648"},
                 [] { set_cudnn_setting(CudnnSetting::kBenchmarkLimit, 2147483648); });
    expect_error(YOKE_E_VALUE, {"workspace_limit is -5", "bytes"},
                 [] { set_cudnn_setting(CudnnSetting::kWorkspaceLimit, -5); });
    EXPECT_EQ(cudnn_setting(CudnnSetting::kBenchmarkLimit), 10);
    EXPECT_EQ(cudnn_setting(CudnnSetting::kWorkspaceLimit), 256 << 20);
}

TEST(Engines, CudnnIsAskedForOnlyWhereItIsEnabled)
{
    in_fresh_process([] {
        cuda.engine = engine;
        register_backend("cuda", get_cuda);
        set_cudnn_setting(CudnnSetting::kEnabled, 0);
        const FoundEngine off = find_cudnn();
        EXPECT_EQ(off.version, 0);
        EXPECT_NE(off.why.find("YOKE_CUDNN_ENABLED"), std::string::npos) << off.why;
        EXPECT_EQ(asked, 0);
        set_cudnn_setting(CudnnSetting::kEnabled, 1);
        const FoundEngine here = find_cudnn(), gone = find_cudnn();
        EXPECT_EQ(here.version, 91900);
        EXPECT_EQ(here.why, "");
        EXPECT_EQ(gone.version, 0);
        EXPECT_EQ(gone.why, "it is gone");
        expect_error(YOKE_E_INTERNAL, {"cannot query cuDNN", "told to fail"}, [] { find_cudnn(); });
    });
}

TEST(Engines, WhereThereIsNoDeviceOrNoEngineThatIsWhy)
{
    in_fresh_process([] {
        fake.devices = 0;
        cuda.engine = engine;
        register_backend("cuda", get_cuda);
        EXPECT_EQ(find_cudnn().why, "the fake was told to have none");
        EXPECT_EQ(asked, 0);
    });
    in_fresh_process([] {
        register_backend("cuda", get_cuda);
        EXPECT_NE(find_cudnn().why.find("cuda does not call cuDNN"), std::string::npos);
    });
}

}  // namespace yoke
