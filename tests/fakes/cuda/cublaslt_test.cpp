// Products through cuBLASLt: finding the library, handles and tuning, with the emulated module over the fakes.
#include "kernels/cuda/host/cublaslt_library.h"
#include "kernels/cuda/host/library.h"
#include "tests/fakes/cuda/products.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace yoke::test {

TEST(CublasLt, AHandleLivesFromADevicesFirstProductUntilItCloses)
{
    in_fresh_process([] {
        Products products;
        EXPECT_EQ(live_handles(), 0) << "nobody asked yet";
        ASSERT_EQ(products.multiply(), YOKE_OK);
        EXPECT_EQ(products.out, products.want);
        ASSERT_EQ(products.multiply(), YOKE_OK);
        EXPECT_EQ(live_handles(), 1);
        EXPECT_EQ(g_scratch, 0);
        g_table->device_close(products.device);
        EXPECT_EQ(live_handles(), 0);
        ASSERT_EQ(g_table->device_open(0, &products.device), YOKE_OK);
        products.out.fill(0);
        ASSERT_EQ(products.multiply(), YOKE_OK);
        EXPECT_EQ(products.out, products.want);
    });
}

TEST(CublasLt, ABatchBeyondWhatAGridHoldsIsComputedInParts)
{
    const auto multiply = [](size_t batch, bool shared_right) {
        Products products;
        std::vector<double> x(2 * batch), y(shared_right ? 2 : 2 * batch), out(batch, -1);
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 1013);
        for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<double>(i % 7 + 1);
        const auto length = static_cast<int64_t>(batch);
        Record record(YOKE_OP_MATMUL, products.device);
        record.in(x.data(), {length, 1, 2});
        if (shared_right)
            record.in(y.data(), {1, 2, 1});
        else
            record.in(y.data(), {length, 2, 1});
        record.out(out.data(), {length, 1, 1});
        ASSERT_EQ(products.finish(record), YOKE_OK) << take_backend_error(YOKE_E_INTERNAL, "call");
        for (size_t i = 0; i < batch; ++i) {
            const size_t at = shared_right ? 0 : 2 * i;
            ASSERT_EQ(out[i], x[2 * i] * y[at] + x[2 * i + 1] * y[at + 1]) << i;
        }
    };
    for (const bool shared_right : {false, true}) {
        in_fresh_process([&] {
            multiply(65535, shared_right);
            EXPECT_EQ(products_in(CUBLAS_COMPUTE_64F), 1) << "what fits is one product";
        });
        in_fresh_process([&] {
            multiply(65536 + 32768 + 1, shared_right);
            EXPECT_EQ(products_in(CUBLAS_COMPUTE_64F), shared_right ? 1 : 4)
                << "over a shared matrix it is one product of many rows";
        });
    }
}

TEST(CublasLt, ACardWithoutProductsOfBfloat16SaysSo)
{
    for (const char *capability : {"7.5", "8.0"})
        in_fresh_process([&] {
            setenv("FAKE_CUDA_DEVICES", capability, 1);
            Products products;
            alignas(256) std::array<uint16_t, 4> x = {0x3f80, 0, 0, 0x3f80}, out = {};
            Record record(YOKE_OP_MATMUL, products.device);
            for (int operand = 0; operand < 2; ++operand)
                record.in(reinterpret_cast<uint8_t *>(x.data()), {2, 2}).as(YOKE_BF16);
            record.out(reinterpret_cast<uint8_t *>(out.data()), {2, 2}).as(YOKE_BF16);
            const yoke_status status = products.finish(record);
            if (capability[0] == '8') {
                EXPECT_EQ(status, YOKE_OK);
                EXPECT_EQ(out, x);
            } else {
                expect_failure(YOKE_E_UNSUPPORTED, status,
                               {"cuda:0", "7.5", "bfloat16", "float16 or float32"});
            }
        });
}

TEST(CublasLt, AProductIsRoundedToTf32OnlyWhereItsLaunchAllowsIt)
{
    in_fresh_process([] {
        Products products;
        products.x[0] += 0x1p-12f;  // TF32 has 10 bits behind the point
        std::array<float, 4> exact = products.want;
        exact[0] += 0x1p-12f;
        // The third product finds the first product's plan, and the fourth finds the second's plan.
        for (const bool allowed : {false, true, false, true}) {
            ASSERT_EQ(products.multiply(allowed ? YOKE_LAUNCH_TF32 : 0), YOKE_OK);
            EXPECT_EQ(products.out, allowed ? products.want : exact) << allowed;
        }
        EXPECT_EQ(products_in(CUBLAS_COMPUTE_32F), 2);
        EXPECT_EQ(products_in(CUBLAS_COMPUTE_32F_FAST_TF32), 2);
    });
}

TEST(CublasLt, AProductOfAnotherDtypeThanF32KnowsNoTf32)
{
    in_fresh_process([] {
        Products products;
        alignas(256) std::array<double, 2> x = {1 + 0x1p-40, 0}, y = {1, 0}, out = {0, 0};
        ASSERT_EQ(products.finish(Record(YOKE_OP_MATMUL, products.device)
                                      .in(x.data(), {1, 2})
                                      .in(y.data(), {2, 1})
                                      .out(out.data(), {1, 1})
                                      .allow(YOKE_LAUNCH_TF32)),
                  YOKE_OK);
        EXPECT_EQ(out[0], x[0]);
        EXPECT_EQ(products_in(CUBLAS_COMPUTE_64F), 1);
        EXPECT_EQ(products_in(CUBLAS_COMPUTE_32F_FAST_TF32), 0);
    });
}

TEST(CublasLt, AnotherMajorVersionIsRefusedAndEverythingElseWorks)
{
    in_fresh_process([] {
        setenv("FAKE_CUBLASLT_VERSION", "50805", 1);
        Products products;
        expect_failure(YOKE_E_UNAVAILABLE, products.multiply(),
                       {"matmul", CUBLASLT, "the library is version 5.8, but this module needs",
                        "pip install", "YOKE_CUDA_LIB_PATH"});
        EXPECT_EQ(live_handles(), 0);
        EXPECT_EQ(products.finish(Record(YOKE_OP_NEG, products.device)
                                      .in(products.x.data(), {4})
                                      .out(products.out.data(), {4})),
                  YOKE_OK);
        EXPECT_EQ(products.out[3], -4);
        EXPECT_EQ(Record(YOKE_OP_MATMUL, products.device)
                      .in((const int32_t *)products.x.data(), {2, 3})
                      .in((const int32_t *)products.y.data(), {3, 2})
                      .out((int32_t *)products.out.data(), {2, 2})
                      .run(*g_table),
                  YOKE_OK)
            << "integers need no library";
    });
}

TEST(CublasLt, TheFirstFolderThatHasTheLibraryDecides)
{
    in_fresh_process([] {
        Products products(FOLDER "/nowhere:" FOLDER "/no_cublas:" FOLDER "/driver");
        const std::string name = std::string(CUBLASLT).substr(std::string(CUBLASLT).rfind('/'));
        expect_failure(YOKE_E_UNAVAILABLE, products.multiply(),
                       {FOLDER "/nowhere" + name + " (no such file)", FOLDER "/no_cublas" + name});
    });
}

// A copy of the library in which the function has another name. False if there is no such function.
bool write_library_without(const std::string &function, const std::filesystem::path &copy)
{
    std::ifstream in(CUBLASLT, std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(in), {});
    const std::string name = std::string(1, '\0') + function + std::string(1, '\0');
    bool found = false;
    for (size_t at = bytes.find(name); at != std::string::npos; at = bytes.find(name, at + 1)) {
        bytes[at + 1] = '_';
        found = true;
    }
    std::filesystem::create_directories(copy.parent_path());
    std::ofstream(copy, std::ios::binary) << bytes;
    return found;
}

TEST(CublasLt, AnyFunctionThatTheLibraryLacksIsNamed)
{
    static constexpr const char *kFunctions[] = {YOKE_CUBLASLT_CALLS(YOKE_LIBRARY_NAME)};
    const std::filesystem::path copy =
        FOLDER "/lacking" / std::filesystem::path(CUBLASLT).filename();
    for (const char *function : kFunctions)
        EXPECT_TRUE(passes_in_child([&] {
            ASSERT_TRUE(write_library_without(function, copy));
            Products products(FOLDER "/lacking:" FOLDER "/driver");
            expect_failure(YOKE_E_UNAVAILABLE, products.multiply(),
                           {"matmul", copy.c_str(), std::string("has no ") + function});
            EXPECT_EQ(live_handles(), 0);
        })) << function;
    std::filesystem::remove_all(copy.parent_path());
}

bool refuses(void *, char *why, size_t capacity)
{
    snprintf(why, capacity, "it will not do");
    return false;
}

TEST(CublasLt, EveryPlaceThatWasTriedIsTold)
{
    in_fresh_process([] {
        unsetenv("VIRTUAL_ENV");
        setenv("CUDA_HOME", FOLDER "/toolkit", 1);
        setenv("CONDA_PREFIX", FOLDER "/conda", 1);
        char text[4096];
        cuda::Text tried{text, sizeof text};
        const cuda::LibraryName name{"libyokenone.so.13", {"none/lib", "", ""}, refuses};
        EXPECT_EQ(cuda::find_library(name, FOLDER "/old", tried), nullptr);
        for (const char *place :
             {FOLDER "/old/libyokenone.so.13 (there is libyokenone.so.12, of another version)",
              FOLDER "/conda/lib/python3.11/site-packages/nvidia/none/lib/libyokenone.so.13 (",
              ", libyokenone.so.13 (libyokenone.so.13: cannot open",
              FOLDER "/toolkit/lib64/libyokenone.so.13 (no such file)"})
            EXPECT_NE(std::string(text).find(place), std::string::npos) << place << " | " << text;
        cuda::Text again{text, sizeof text};
        const cuda::LibraryName libm{"libm.so.6", {"", "", ""}, refuses};
        EXPECT_EQ(cuda::find_library(libm, nullptr, again), nullptr);
        EXPECT_NE(std::string(text).find("libm.so.6 (it will not do)"), std::string::npos) << text;
    });
}

TEST(CublasLt, WinnersOfTuningAreKeptAndFoundAgain)
{
    const std::string file = std::string(FOLDER) + "/winners.txt";
    setenv("YOKE_CUBLASLT_AUTOTUNE", "1", 1);
    setenv("YOKE_CUBLASLT_AUTOTUNE_FILE", file.c_str(), 1);
    in_fresh_process([&] {
        std::ofstream(file) << "what cannot be read\ncublaslt 1 Fake_GPU_0 00 00\n";
        Products products;
        ASSERT_EQ(products.multiply(), YOKE_OK);
        EXPECT_EQ(products.out, products.want);
        EXPECT_EQ(g_scratch, 0);
    });
    std::ifstream written(file);
    std::string line, last;
    int lines = 0;
    for (; std::getline(written, line); last = line) ++lines;
    EXPECT_EQ(lines, 3);
    EXPECT_NE(last.find(" Fake_GPU_0 "), std::string::npos) << last;
    in_fresh_process([] {
        setenv("FAKE_CUDA_FAIL", "cublasLtMatmulAlgoGetHeuristic=14", 1);
        Products products;
        EXPECT_EQ(products.multiply(), YOKE_OK) << "nothing needs to be chosen";
        EXPECT_EQ(products.out, products.want);
        expect_failure(YOKE_E_INTERNAL,
                       Record(YOKE_OP_MATMUL, products.device)
                           .in(products.x.data(), {1, 6})
                           .in(products.y.data(), {6, 1})
                           .out(products.out.data(), {1, 1})
                           .run(*g_table),
                       {"cublasLtMatmulAlgoGetHeuristic"});
    });
    unsetenv("YOKE_CUBLASLT_AUTOTUNE");
    unsetenv("YOKE_CUBLASLT_AUTOTUNE_FILE");
}

// Multiplies x (2 x 3) by weight (8 x 3) with equal rows, with an activation in cuBLASLt's own pass.
void run_linear(const char *activation, bool keep, std::vector<float> &out,
                std::vector<float> &before)
{
    Products products;
    const std::vector<float> weight(24, 0.25f), bias(8, -1.0f);
    alignas(16) float room[8];
    std::copy(bias.begin(), bias.end(), room);
    out.assign(16, 0);
    before.assign(16, 0);
    Record record(activation ? YOKE_OP__LINEAR_ACT : YOKE_OP__LINEAR_RELU, products.device);
    record.in(products.x.data(), {2, 3}).in(weight.data(), {8, 3}).in(room, {8});
    record.out(out.data(), {2, 8});
    if (activation)
        record.out(before.data(), {keep ? 2 : 0, 8}).text(activation).param(int64_t(keep));
    EXPECT_EQ(record.run(*g_table), YOKE_OK);
    EXPECT_EQ(g_scratch, 0);
}

TEST(CublasLt, ActivationsAreFusedForThoseWhoAsk)
{
    setenv("YOKE_CUBLASLT_FUSE_ACTIVATIONS", "1", 1);
    in_fresh_process([] {
        std::vector<float> out, before;
        run_linear(nullptr, false, out, before);
        EXPECT_EQ(out[0], 0.5f);
        EXPECT_EQ(out[8], 2.75f);
        const auto gelu = [](double x) {
            return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
        };
        run_linear("gelu_tanh", true, out, before);
        EXPECT_NEAR(out[15], gelu(2.75), 1e-5);
        EXPECT_EQ(before[15], 2.75f);
        run_linear("gelu_tanh", false, out, before);
        EXPECT_NEAR(out[7], gelu(0.5), 1e-5);
    });
    unsetenv("YOKE_CUBLASLT_FUSE_ACTIVATIONS");
}

}  // namespace yoke::test
