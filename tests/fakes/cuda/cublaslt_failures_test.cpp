// Effects of failures of cuBLASLt, with the emulated module over the fakes.
#include "tests/fakes/cuda/products.h"

namespace yoke::test {

TEST(CublasLt, AFailureNamesTheCallAndLeavesNothingBehind)
{
    in_fresh_process([] {
        struct Failure {
            const char *call, *fault, *told;
            yoke_status status;
        };
        constexpr Failure failures[] = {
            {"cublasLtCreate", "cublasLtCreate=3", "(3)", YOKE_E_OOM},
            {"cublasLtCreate", "cublasLtCreate=1", "(1)", YOKE_E_UNAVAILABLE},
            {"cublasLtMatmulDescInit", "cublasLtMatmulDescInit_internal=3", "(3)", YOKE_E_OOM},
            {"cublasLtMatmulDescSetAttribute", "cublasLtMatmulDescSetAttribute=7", "(7)",
             YOKE_E_INTERNAL},
            {"cublasLtMatrixLayoutInit", "cublasLtMatrixLayoutInit_internal=3", "(3)", YOKE_E_OOM},
            {"cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulPreferenceSetAttribute=7",
             "(7)", YOKE_E_INTERNAL},
            {"cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmulAlgoGetHeuristic=14", "(14)",
             YOKE_E_INTERNAL},
            {"no algorithm", "cublasLtMatmulAlgoGetHeuristic=15", "2 x 3 by 3 x 2",
             YOKE_E_UNSUPPORTED},
        };
        for (const Failure &failure : failures) {
            Products products;
            setenv("FAKE_CUDA_FAIL", failure.fault, 1);
            expect_failure(failure.status, products.multiply(),
                           {"matmul", failure.call, failure.told});
            unsetenv("FAKE_CUDA_FAIL");
            EXPECT_EQ(g_scratch, 0) << failure.fault;
            g_table->device_close(products.device);
            EXPECT_EQ(live_handles(), 0) << failure.fault;
        }
        Products products;
        setenv("FAKE_CUDA_FAIL", "cublasLtMatmul=13", 1);
        for (int i = 0; i < 2; ++i)
            expect_failure(
                YOKE_E_INTERNAL, products.multiply(),
                {"matmul: cuda:0: cublasLtMatmul of 1 x (2 x 3 by 3 x 2) failed", "(13)"});
        unsetenv("FAKE_CUDA_FAIL");
        EXPECT_EQ(g_scratch, 0);
        EXPECT_EQ(products.multiply(), YOKE_OK) << "the plan is a good one";
        EXPECT_EQ(products.out, products.want);
    });
}

// The report must not depend on the error code of cuBLASLt. The module's own runtime keeps no last error of
// cuBLASLt's calls.
TEST(CublasLt, AFailureByWhichTheDeviceIsLostSaysSo)
{
    constexpr const char *kFaults[] = {
        "cublasLt's kernel=700",
        "cublasLtMatmul=13,cudaStreamQuery=719",
        "cublasLtMatmul=14,cudaStreamIsCapturing=700",
        "cublasLtMatmulAlgoGetHeuristic=14,cudaStreamQuery=700",
        "cublasLtCreate=1,cudaStreamQuery=700",
    };
    for (const char *fault : kFaults)
        EXPECT_TRUE(passes_in_child([&] {
            Products products;
            setenv("FAKE_CUDA_FAIL", fault, 1);
            expect_failure(YOKE_E_DEVICE_LOST, products.multiply(),
                           {"matmul: cuda:0: cublasLt", "; CUDA reports cudaErrorFake7",
                            "restart the process", "Xid"});
        })) << fault;
    in_fresh_process([] {
        Products products;
        setenv("FAKE_CUDA_FAIL", "cublasLtMatmul=13,cudaStreamQuery=600", 1);
        expect_failure(YOKE_E_INTERNAL, products.multiply(), {"(13)"});
        setenv("FAKE_CUDA_FAIL", "cublasLt's kernel=2", 1);
        expect_failure(YOKE_E_INTERNAL, products.multiply(), {"(13)"});
        unsetenv("FAKE_CUDA_FAIL");
        EXPECT_EQ(products.multiply(), YOKE_OK) << "nothing is left behind";
    });
}

TEST(CublasLt, ADeviceThatItFindsLostStaysLost)
{
    for (const char *error : {"700", "719"})
        EXPECT_TRUE(passes_in_child([&] {
            Products products;
            void *block = nullptr;
            ASSERT_EQ(products.multiply(), YOKE_OK);
            setenv("FAKE_CUDA_FAIL", (std::string("cublasLt's kernel=") + error).c_str(), 1);
            expect_failure(YOKE_E_DEVICE_LOST, products.multiply(), {"; CUDA reports", error});
            unsetenv("FAKE_CUDA_FAIL");
            for (int time = 0; time < 2; ++time) {
                expect_failure(YOKE_E_DEVICE_LOST, products.multiply(),
                               {error, "caused by earlier work", "restart the process"});
                expect_failure(YOKE_E_DEVICE_LOST, g_table->alloc(products.device, 64, &block),
                               {"cudaMalloc", error, "caused by earlier work"});
                expect_failure(YOKE_E_DEVICE_LOST, g_table->device_synchronize(products.device),
                               {"cudaDeviceSynchronize", error, "caused by earlier work"});
            }
        })) << error;
}

TEST(CublasLt, TuningEndsWithADeviceThatIsLost)
{
    setenv("YOKE_CUBLASLT_AUTOTUNE", "1", 1);
    in_fresh_process([] {
        Products products;
        setenv("FAKE_CUDA_FAIL", "cublasLt's kernel@3=700", 1);
        expect_failure(YOKE_E_DEVICE_LOST, products.multiply(),
                       {"tuning a matrix product: cublasLtMatmul", "CUDA reports"});
        EXPECT_EQ(g_scratch, 0);
    });
    unsetenv("YOKE_CUBLASLT_AUTOTUNE");
}

// A query of a captured stream would spoil the capture.
TEST(CublasLt, AFailureWithinACaptureLeavesTheCaptureWhole)
{
    in_fresh_process([] {
        Products products;
        void *stream = nullptr, *graph = nullptr;
        lent.free_scratch = [](void *, void *, void *) noexcept {};  // a graph's memory stays
        ASSERT_EQ(g_table->stream_create(products.device, 0, &stream), YOKE_OK);
        ASSERT_EQ(g_table->graph_begin(products.device, stream, YOKE_LAUNCH_CUDNN_OFF), YOKE_OK);
        setenv("FAKE_CUDA_FAIL", "cublasLtMatmul=13", 1);
        expect_failure(YOKE_E_INTERNAL,
                       Record(YOKE_OP_MATMUL, products.device, stream)
                           .in(products.x.data(), {1, 6})
                           .in(products.y.data(), {6, 1})
                           .out(products.out.data(), {1, 1})
                           .run(*g_table),
                       {"(13)"});
        unsetenv("FAKE_CUDA_FAIL");
        EXPECT_EQ(g_table->graph_end(products.device, stream, &graph), YOKE_OK);
    });
}

TEST(CublasLt, AlgorithmsThatFailedItsChecksArePassedOver)
{
    in_fresh_process([] {
        setenv("FAKE_CUBLASLT_UNFIT", "1", 1);
        Products products;
        expect_failure(YOKE_E_UNSUPPORTED, products.multiply(), {"no algorithm"});
    });
    setenv("YOKE_CUBLASLT_AUTOTUNE", "1", 1);
    in_fresh_process([] {
        setenv("FAKE_CUBLASLT_UNFIT", "3", 1);
        setenv("FAKE_CUDA_TICKS", "1", 1);
        setenv("FAKE_CUBLASLT_MICROSECONDS", "100000", 1);
        Products products;
        ASSERT_EQ(products.multiply(), YOKE_OK);
        EXPECT_EQ(products.out, products.want);
        EXPECT_EQ(products_in(CUBLAS_COMPUTE_32F), 2 + 1)
            << "the best two were tried, and time was up";
    });
    unsetenv("YOKE_CUBLASLT_AUTOTUNE");
}

}  // namespace yoke::test
