// Tuning of products: cuBLASLt's winning algorithm on a clock of the fakes, and cases without timing.
#include "tests/fakes/cuda/products.h"

#include <cstdio>
#include <fstream>

namespace yoke::test {

namespace {

// Sets the variables in the calling process, a process for this test alone.
void tune(const char *microseconds, const char *file = nullptr)
{
    setenv("YOKE_CUBLASLT_AUTOTUNE", "1", 1);
    setenv("FAKE_CUDA_TICKS", "1", 1);
    setenv("FAKE_CUBLASLT_MICROSECONDS", microseconds, 1);
    if (file) setenv("YOKE_CUBLASLT_AUTOTUNE_FILE", file, 1);
}

int last_algorithm()
{
    void *library = dlopen(CUBLASLT, RTLD_NOW | RTLD_NOLOAD);
    return reinterpret_cast<int (*)()>(dlsym(library, "fake_cublaslt_algorithm"))();
}

int products()
{
    return products_in(CUBLAS_COMPUTE_32F);
}

// Stream in a capture; memory of the graph stays.
struct Capture : Products {
    void *stream = nullptr, *graph = nullptr;

    Capture()
    {
        lent.free_scratch = [](void *, void *, void *) noexcept {};
        EXPECT_EQ(g_table->stream_create(device, 0, &stream), YOKE_OK);
        EXPECT_EQ(g_table->graph_begin(device, stream, YOKE_LAUNCH_CUDNN_OFF), YOKE_OK);
    }
    yoke_status multiply_there()
    {
        return Record(YOKE_OP_MATMUL, device, stream)
            .in(x.data(), {2, 3})
            .in(y.data(), {3, 2})
            .out(out.data(), {2, 2})
            .run(*g_table);
    }
    void end()
    {
        ASSERT_EQ(g_table->graph_end(device, stream, &graph), YOKE_OK);
        ASSERT_EQ(g_table->graph_launch(device, graph, stream), YOKE_OK);
        ASSERT_EQ(g_table->stream_synchronize(device, stream), YOKE_OK);
        EXPECT_EQ(out, want);
        lent.free_scratch = give_scratch;
    }
};

}  // namespace

// The tuner times several products together. With a single product, most of the time would be the latency of the
// device.
TEST(Tuning, TakesTheFastestHoweverLateTheDeviceBegins)
{
    for (int seed = 0; seed < 16; ++seed)
        EXPECT_TRUE(passes_in_child([&] {
            tune("16,13,10,13,16,13,13,16");
            setenv("FAKE_CUDA_LATENCY", "60", 1);
            setenv("FAKE_CUDA_SEED", std::to_string(seed).c_str(), 1);
            Products products;
            ASSERT_EQ(products.multiply(), YOKE_OK);
            EXPECT_EQ(products.out, products.want);
            EXPECT_EQ(last_algorithm(), 2);
        })) << seed;
}

TEST(Tuning, TakesTheFirstOfThoseThatAreAsFastAsEachOther)
{
    in_fresh_process([] {
        tune("1000,995,990");
        Products all;
        ASSERT_EQ(all.multiply(), YOKE_OK);
        EXPECT_EQ(last_algorithm(), 0);
    });
}

TEST(Tuning, IsLeftOutIfTheLaunchMustBeDeterministic)
{
    in_fresh_process([] {
        tune("30,20,10,20");
        Products all;
        int before = 0;
        for (const bool same : {true, false, true}) {
            ASSERT_EQ(all.multiply(same ? YOKE_LAUNCH_DETERMINISTIC : 0), YOKE_OK);
            EXPECT_EQ(last_algorithm(), same ? 0 : 2) << "also after another launch's trials";
            EXPECT_TRUE(!same || products() == before + 1);
            before = products();
        }
    });
}

TEST(Tuning, TakesNoLongerThanItMay)
{
    struct Case {
        const char *microseconds;
        int products;
    };
    // Each algorithm is timed once. After the first 200 ms, only the second is timed. A slower algorithm takes no
    // part in the rounds; a round has 32 products of the fastest. The caller's own product adds 1.
    const Case cases[] = {{"1000000", 2 + 1},
                          {"30000", 7 + 1},
                          {"10,10000", (2 + 5 * 32) + 7 * 2 + 1},
                          {"10000,10", 7 * (2 + 5 * 32) + 2 + 1}};
    for (const Case &one : cases)
        EXPECT_TRUE(passes_in_child([&] {
            tune(one.microseconds);
            Products all;
            ASSERT_EQ(all.multiply(), YOKE_OK);
            EXPECT_EQ(products(), one.products);
        })) << one.microseconds;
}

TEST(Tuning, OfAPlanThatACaptureMadeComesAfterTheCapture)
{
    const std::string file = std::string(FOLDER) + "/winners_of_capture.txt";
    in_fresh_process([&] {
        std::ofstream(file).close();
        tune("30,20,10,20", file.c_str());
        Capture capture;
        const int before = products();
        ASSERT_EQ(capture.multiply_there(), YOKE_OK);
        ASSERT_EQ(capture.multiply_there(), YOKE_OK);
        EXPECT_EQ(products(), before + 2) << "nothing is timed in a capture";
        EXPECT_EQ(last_algorithm(), 0);
        capture.end();
        EXPECT_EQ(std::ifstream(file).peek(), EOF) << "nobody has won yet";
        ASSERT_EQ(capture.multiply(), YOKE_OK);
        EXPECT_EQ(capture.out, capture.want);
        EXPECT_GT(products(), before + 10);
        EXPECT_EQ(last_algorithm(), 2);
        const int tuned = products();
        ASSERT_EQ(capture.multiply(), YOKE_OK);
        EXPECT_EQ(products(), tuned + 1) << "and only once";
        EXPECT_EQ(last_algorithm(), 2);
    });
    in_fresh_process([&] {
        tune("30,20,10,20", file.c_str());
        Capture capture;
        ASSERT_EQ(capture.multiply_there(), YOKE_OK);
        EXPECT_EQ(last_algorithm(), 2) << "a winner that was kept serves a capture, too";
        capture.end();
        const int before = products();
        ASSERT_EQ(capture.multiply(), YOKE_OK);
        EXPECT_EQ(products(), before + 1) << "there is nothing left to tune";
    });
    remove(file.c_str());
}

}  // namespace yoke::test
