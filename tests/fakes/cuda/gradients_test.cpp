// Gradients of products through cuBLASLt: sums of rows within the product, float32 results of halves, sums in place.
#include "tests/fakes/cuda/products.h"

namespace yoke::test {

namespace {

int asked(const char *function)
{
    void *library = dlopen(CUBLASLT, RTLD_NOW | RTLD_NOLOAD);
    return reinterpret_cast<int (*)()>(dlsym(library, function))();
}

int last_epilogue()
{
    return asked("fake_cublaslt_epilogue");
}

int last_reductions()
{
    return asked("fake_cublaslt_reductions");
}

// Gradients of a product of 3 rows, with halves as their bits.
struct Gradients : Products {
    // grad is 3 x 2, x is 3 x 4: in numbers [[1 2] [3 4] [5 6]] and [[1 0 0 1] [0 1 0 1] [0 0 1 1]].
    alignas(256) std::array<uint16_t, 6> half_grad = {0x3c00, 0x4000, 0x4200,
                                                      0x4400, 0x4500, 0x4600};
    alignas(256) std::array<uint16_t, 12> half_x = {0x3c00, 0,      0, 0x3c00, 0,      0x3c00,
                                                    0,      0x3c00, 0, 0,      0x3c00, 0x3c00};
    alignas(256) std::array<float, 6> grad = {1, 2, 3, 4, 5, 6};
    alignas(256) std::array<float, 12> rows = {1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1};
    alignas(256) std::array<float, 8> weight = {10, 10, 10, 10, 10, 10, 10, 10};
    alignas(256) std::array<float, 2> bias = {-1, -1};
    const std::array<float, 8> product = {1, 3, 5, 9, 2, 4, 6, 12};
    const std::array<float, 2> sums = {9, 12};

    yoke_status run(bool halves, bool adds, bool with_bias = true)
    {
        Record record(YOKE_OP__PRODUCT_GRADIENTS, device);
        record.change(weight.data(), {2, 4});
        if (with_bias) record.change(bias.data(), {2});
        if (halves)
            record.in(half_grad.data(), {3, 2}).in(half_x.data(), {3, 4});
        else
            record.in(grad.data(), {3, 2}).in(rows.data(), {3, 4});
        record.param(int64_t(adds), YOKE_ARG_BOOL);
        return finish(record);
    }
    void expect_weight(float before) const
    {
        for (size_t i = 0; i < weight.size(); ++i) EXPECT_EQ(weight[i], before + product[i]) << i;
    }
};

}  // namespace

TEST(ProductGradients, PartsOfASplitSumAreAddedInTheResultOnlyIfItIsFloat32)
{
    in_fresh_process([] {
        Gradients all;
        ASSERT_EQ(all.multiply(), YOKE_OK);
        EXPECT_EQ(last_reductions(),
                  CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_INPLACE);
        alignas(256) std::array<uint16_t, 8> out = {};
        ASSERT_EQ(all.finish(Record(YOKE_OP_MATMUL, all.device)
                                 .in(all.half_grad.data(), {2, 3})
                                 .in(all.half_x.data(), {3, 4})
                                 .out(out.data(), {2, 4})),
                  YOKE_OK);
        EXPECT_EQ(last_reductions(), CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
        ASSERT_EQ(all.run(true, false), YOKE_OK);
        EXPECT_EQ(last_reductions(),
                  CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_INPLACE);
        alignas(256) std::array<double, 2> a = {1, 2}, b = {3, 4}, c = {0, 0};
        ASSERT_EQ(all.finish(Record(YOKE_OP_MATMUL, all.device)
                                 .in(a.data(), {1, 2})
                                 .in(b.data(), {2, 1})
                                 .out(c.data(), {1, 1})),
                  YOKE_OK);
        EXPECT_EQ(last_reductions(), CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
    });
}

TEST(ProductGradients, TheBiasComesWithTheProductIfCublasLtCan)
{
    for (const bool halves : {false, true})
        for (const bool can : {true, false})
            in_fresh_process([&] {
                if (!can) setenv("FAKE_CUBLASLT_NO_SUMS", "1", 1);
                Gradients all;
                ASSERT_EQ(all.run(halves, false), YOKE_OK);
                all.expect_weight(0);
                EXPECT_EQ(all.bias, all.sums);
                EXPECT_EQ(last_epilogue(),
                          can ? CUBLASLT_EPILOGUE_BGRADB : CUBLASLT_EPILOGUE_DEFAULT);
                EXPECT_EQ(products_in(CUBLAS_COMPUTE_32F), 1);
                EXPECT_EQ(g_scratch, 0);
                ASSERT_EQ(all.run(halves, false, false), YOKE_OK);
                EXPECT_EQ(last_epilogue(), CUBLASLT_EPILOGUE_DEFAULT);
            });
}

TEST(ProductGradients, OfASingleColumnAreSummedOverTheOtherMatrix)
{
    in_fresh_process([] {
        Gradients all;
        ASSERT_EQ(all.finish(Record(YOKE_OP__PRODUCT_GRADIENTS, all.device)
                                 .change(all.weight.data(), {2, 1})
                                 .change(all.bias.data(), {2})
                                 .in(all.grad.data(), {3, 2})
                                 .in(all.rows.data(), {3, 1})
                                 .param(int64_t(0), YOKE_ARG_BOOL)),
                  YOKE_OK);
        EXPECT_EQ(last_epilogue(), CUBLASLT_EPILOGUE_BGRADA);
        EXPECT_EQ(all.bias, all.sums);
        EXPECT_EQ(all.weight[0], 1);
        EXPECT_EQ(all.weight[1], 2);
    });
}

TEST(ProductGradients, OfHalvesAreRoundedOnceAndAddedToFloat32)
{
    in_fresh_process([] {
        Gradients all;
        ASSERT_EQ(all.run(true, true), YOKE_OK);
        all.expect_weight(10);
        EXPECT_EQ(all.bias, all.sums);
        all.half_grad = {0x6800, 0, 0x3c00, 0, 0, 0};  // 2048 and 1: their sum is no half
        ASSERT_EQ(all.run(true, false), YOKE_OK);
        EXPECT_EQ(all.weight[3], 2049);
        EXPECT_EQ(all.bias[0], 2049);
    });
}

TEST(ProductGradients, AreAddedOnceHoweverOftenAlgorithmsAreTried)
{
    in_fresh_process([] {
        setenv("YOKE_CUBLASLT_AUTOTUNE", "1", 1);
        setenv("FAKE_CUDA_TICKS", "1", 1);
        setenv("FAKE_CUBLASLT_MICROSECONDS", "30,20,10,20", 1);
        Gradients all;
        ASSERT_EQ(all.run(true, true), YOKE_OK);
        EXPECT_GT(products_in(CUBLAS_COMPUTE_32F), 10);
        EXPECT_EQ(asked("fake_cublaslt_algorithm"), 2);
        all.expect_weight(10);
        EXPECT_EQ(all.bias, all.sums);
        EXPECT_EQ(g_scratch, 0);
    });
}

}  // namespace yoke::test
