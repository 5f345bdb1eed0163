// Every call of cuBLASLt, and calls for a product, fail once; see faults.h.
#include "faults.h"
#include "tests/backend/launch.h"

namespace yoke::test {

namespace {

yoke_status multiply(Scenario &s, const float *x, const float *y, float *out)
{
    return Record(YOKE_OP_MATMUL, s.device)
        .in(x, {8, 8})
        .in(y, {8, 8})
        .out(out, {8, 8})
        .run(s.table());
}

const std::vector<const char *> kEveryProduct = {
    "cublasLtCreate",
    "cublasLtDestroy",
    "cublasLtMatmulDescInit_internal",
    "cublasLtMatmulDescSetAttribute",
    "cublasLtMatrixLayoutInit_internal",
    "cublasLtMatmulPreferenceInit_internal",
    "cublasLtMatmulPreferenceSetAttribute",
    "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtMatmul",
    "cublasLt's kernel",
    "cudaMalloc",  // for the workspace
};

std::vector<const char *> and_also(std::vector<const char *> names,
                                   const std::vector<const char *> &more)
{
    names.insert(names.end(), more.begin(), more.end());
    return names;
}

}  // namespace

// First a new plan, then a found plan, then a plan for a batch.
TEST(Faults, OfMatrixProducts)
{
    expect_every_call_may_fail(
        [](Scenario &s) {
            float *x = s.upload(std::vector<float>(64, 1)), *out = s.upload(std::vector<float>(64));
            for (int time = 0; time < 2; ++time) s.step([&] { return multiply(s, x, x, out); });
            EXPECT_EQ(s.download(out, 64), std::vector<float>(64, 8));
            float *batch = s.upload(std::vector<float>(16));
            s.step([&] {
                return Record(YOKE_OP_MATMUL, s.device)
                    .in(x, {4, 2, 2})
                    .in(x, {4, 2, 2})
                    .out(batch, {4, 2, 2})
                    .run(s.table());
            });
            EXPECT_EQ(s.download(batch, 16), std::vector<float>(16, 2));
            s.wait();
            s.free(x, 256);
        },
        and_also(kEveryProduct, {"cublasLtMatrixLayoutSetAttribute"}));
}

// First with a bias alone, then with gelu in cuBLASLt's pass and a stored argument of gelu.
TEST(Faults, OfLinear)
{
    expect_every_call_may_fail(
        [](Scenario &s) {
            setenv("YOKE_CUBLASLT_FUSE_ACTIVATIONS", "1", 1);
            float *x = s.upload(std::vector<float>(64, 1)), *out = s.upload(std::vector<float>(64)),
                  *before = s.upload(std::vector<float>(64));
            s.step([&] {
                return Record(YOKE_OP__LINEAR, s.device)
                    .in(x, {8, 8})
                    .in(x, {8, 8})
                    .in(x, {8})
                    .out(out, {8, 8})
                    .run(s.table());
            });
            EXPECT_EQ(s.download(out, 64), std::vector<float>(64, 9));
            out = s.upload(std::vector<float>(64));
            s.step([&] {
                return Record(YOKE_OP__LINEAR_ACT, s.device)
                    .in(x, {8, 8})
                    .in(x, {8, 8})
                    .in(x, {8})
                    .out(out, {8, 8})
                    .out(before, {8, 8})
                    .text("gelu_tanh")
                    .param(int64_t{1}, YOKE_ARG_BOOL)
                    .run(s.table());
            });
            EXPECT_EQ(s.download(before, 64), std::vector<float>(64, 9));
            EXPECT_NEAR(s.download(out, 64)[63], 9, 1e-4);
            s.wait();
            s.free(x, 256);
        },
        kEveryProduct);
}

// A winner is looked for, found by trying (of two, one with a workspace and one without), kept, and found again when
// the device has been closed.
TEST(Faults, OfTuning)
{
    setenv("FAKE_CUBLASLT_ALGORITHMS", "2", 1);
    setenv("FAKE_CUDA_TICKS", "1",
           1);  // an equal winner and the same calls each time
    setenv("FAKE_CUBLASLT_MICROSECONDS", "30000", 1);  // keeps the number of calls small
    expect_every_call_may_fail(
        [](Scenario &s) {
            const struct Removed : std::string {
                explicit Removed(const std::string &name) : std::string(name) { remove(c_str()); }
                ~Removed() { remove(c_str()); }
            } file(testing::TempDir() + "yoke_winners_" + std::to_string(getpid()));
            setenv("YOKE_CUBLASLT_AUTOTUNE", "1", 1);
            setenv("YOKE_CUBLASLT_AUTOTUNE_FILE", file.c_str(), 1);
            for (int time = 0; time < 2; ++time) {
                float *x = s.upload(std::vector<float>(64, 1)),
                      *out = s.upload(std::vector<float>(64));
                s.step([&] { return multiply(s, x, x, out); });
                EXPECT_EQ(s.download(out, 64), std::vector<float>(64, 8));
                s.wait();
                s.free(x, 256);
                if (time == 1) break;
                s->device_close(s.device);
                s.open(0, &s.device);
            }
        },
        and_also(kEveryProduct,
                 {"cublasLtMatmulAlgoCheck", "cuDeviceGetName", "cudaStreamIsCapturing",
                  "cudaEventCreateWithFlags", "cudaEventRecord", "cudaEventSynchronize",
                  "cudaEventElapsedTime", "cudaEventDestroy"}));
    unsetenv("FAKE_CUBLASLT_ALGORITHMS");
    unsetenv("FAKE_CUDA_TICKS");
    unsetenv("FAKE_CUBLASLT_MICROSECONDS");
}

TEST(Faults, AProductForWhichThereIsNoAlgorithmIsRefused)
{
    for (const char *tuning : {"0", "1"})
        EXPECT_TRUE(passes_in_child([&] {
            setenv("FAKE_CUBLASLT_ALGORITHMS", "0", 1);
            setenv("YOKE_CUBLASLT_AUTOTUNE", tuning, 1);
            Scenario().run([](Scenario &s) {
                float *x = s.upload(std::vector<float>(64, 1));
                const std::string before = Module::held(FAKE_HANDLES);
                for (int time = 0; time < 2;
                     ++time) {  // asked of cuBLASLt, then found in the cache
                    EXPECT_EQ(multiply(s, x, x, x), YOKE_E_UNSUPPORTED);
                    EXPECT_NE(
                        failure().message.find("matmul: cuBLASLt has no algorithm for 1 products"),
                        std::string::npos)
                        << failure().message;
                }
                EXPECT_EQ(Module::calls()["cublasLtMatmulAlgoGetHeuristic"], 1);
                EXPECT_EQ(Module::held(FAKE_HANDLES), before);
                s.wait();
                s.free(x, 256);
            });
            EXPECT_EQ(Module::held(), "");
        })) << tuning;
}

// A partly timed product has no winner, so no line is stored for later runs.
TEST(Faults, AProductThatCouldNotBeTimedKeepsNoWinner)
{
    const std::string file = testing::TempDir() + "yoke_no_winner_" + std::to_string(getpid());
    for (const char *fault : {"cudaEventRecord=2", "cudaEventElapsedTime@5=2", "cublasLtMatmul=14"})
        EXPECT_TRUE(passes_in_child([&] {
            setenv("YOKE_CUBLASLT_AUTOTUNE", "1", 1);
            setenv("YOKE_CUBLASLT_AUTOTUNE_FILE", file.c_str(), 1);
            setenv("FAKE_CUDA_FAIL", fault, 1);
            Scenario().run([](Scenario &s) {
                float *x = s.upload(std::vector<float>(64, 1)),
                      *out = s.upload(std::vector<float>(64));
                const yoke_status status = multiply(s, x, x, out);
                unsetenv("FAKE_CUDA_FAIL");
                if (status) {
                    EXPECT_NE(failure().message.find("cublasLtMatmul"), std::string::npos);
                    EXPECT_EQ(multiply(s, x, x, out), YOKE_OK) << failure().message;
                }
                EXPECT_EQ(s.download(out, 64), std::vector<float>(64, 8));
                s.wait();
                s.free(x, 256);
            });
            EXPECT_NE(access(file.c_str(), F_OK), 0) << "a winner was kept";
            EXPECT_EQ(Module::held(), "");
        })) << fault;
    remove(file.c_str());
}

}  // namespace yoke::test
