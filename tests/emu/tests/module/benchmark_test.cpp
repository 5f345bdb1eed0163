// Measuring of cuDNN's plans, on a clock of the fakes: the winner, its storage, and cases without a measurement.
#include <fstream>
#include <sstream>

#include "attention.h"
#include "cudnn_runs.h"
#include "tests/core/fresh_process.h"

namespace yoke::test {

namespace {

constexpr uint32_t kBenchmark = YOKE_LAUNCH_CUDNN_BENCHMARK;

// Returns the engine of the fake that ran last; of half precision, with sums in order, 2, 3 and 4 may.
int last_engine()
{
    return ask_cudnn("fake_cudnn_last", 0);
}

// Convolves ones by ones, 3 x 3, with `height` rows; returns the value in the middle.
float convolve(const Module &module, void *device, int64_t height = 4, uint32_t flags = kBenchmark)
{
    const auto count = static_cast<size_t>(height * 8);
    const std::vector<float> ones(std::max<size_t>(count, 36), 1.0f);
    std::vector<float> result(count);
    void *x = nullptr, *out = nullptr;
    const uint64_t bytes = ones.size() * 4;
    EXPECT_EQ(module->alloc(device, bytes, &x), YOKE_OK);
    EXPECT_EQ(module->alloc(device, bytes, &out), YOKE_OK);
    EXPECT_EQ(module->copy(device, x, ones.data(), bytes, YOKE_COPY_HOST_TO_DEVICE, nullptr),
              YOKE_OK);
    const std::vector<int64_t> image = {1, 2, height, 4}, last = {height * 8, 1, 8, 2};
    EXPECT_EQ(Record(YOKE_OP__CONV, device)
                  .in(static_cast<const float *>(x), image, last)
                  .in(static_cast<const float *>(x), {2, 2, 3, 3})
                  .absent()
                  .out(static_cast<float *>(out), image, last)
                  .axes({1, 1, 1, 1, 1, 1})
                  .param(int64_t{1})
                  .allow(flags)
                  .run(*Module::table()),
              YOKE_OK)
        << failure().message;
    EXPECT_EQ(
        module->copy(device, result.data(), out, count * 4, YOKE_COPY_DEVICE_TO_HOST, nullptr),
        YOKE_OK);
    EXPECT_EQ(module->device_synchronize(device), YOKE_OK);
    for (void *block : {x, out}) EXPECT_EQ(module->free(device, block, 0), YOKE_OK);
    return result[10];
}

// Computes the gradient by data of ones, added to an output filled with `bias`.
float convolve_back(const Module &module, void *device, float bias)
{
    std::vector<float> ones(36, 1.0f), biases(2, bias), result(32);
    void *block = nullptr, *out = nullptr;
    EXPECT_EQ(module->alloc(device, 1024, &block), YOKE_OK);
    EXPECT_EQ(module->alloc(device, 128, &out), YOKE_OK);
    auto *x = static_cast<float *>(block), *added = x + 128;
    for (const auto &[to, from] : {std::pair(x, &ones), std::pair(added, &biases)})
        EXPECT_EQ(module->copy(device, to, from->data(), from->size() * 4, YOKE_COPY_HOST_TO_DEVICE,
                               nullptr),
                  YOKE_OK);
    const std::vector<int64_t> image = {1, 2, 4, 4}, last = {32, 1, 8, 2};
    EXPECT_EQ(Record(YOKE_OP__CONV_DATA, device)
                  .in<float>(x, image, last)
                  .in<float>(x, {2, 2, 3, 3})
                  .in<float>(added, {2})
                  .out(static_cast<float *>(out), image, last)
                  .axes({4, 4})
                  .axes({1, 1, 1, 1, 1, 1})
                  .param(int64_t{1})
                  .allow(kBenchmark)
                  .run(*Module::table()),
              YOKE_OK)
        << failure().message;
    EXPECT_EQ(module->copy(device, result.data(), out, 128, YOKE_COPY_DEVICE_TO_HOST, nullptr),
              YOKE_OK);
    EXPECT_EQ(module->device_synchronize(device), YOKE_OK);
    for (void *one : {block, out}) EXPECT_EQ(module->free(device, one, 0), YOKE_OK);
    return result[10];
}

template <class F>
void in_benchmark(const char *microseconds, const char *file, const F &body)
{
    EXPECT_TRUE(passes_in_child([&] {
        setenv("FAKE_CUDA_TICKS", "1", 1);
        setenv("FAKE_CUDNN_MICROSECONDS", microseconds, 1);
        if (file) setenv("YOKE_CUDNN_BENCHMARK_FILE", file, 1);
        const Module module;
        void *device = Module::open();
        body(module, device);
        module->device_close(device);
        EXPECT_EQ(Module::held(), "");
    }));
}

std::string read(const std::string &file)
{
    std::ostringstream all;
    all << std::ifstream(file).rdbuf();
    return all.str();
}

std::string winners_file(const char *name)
{
    const std::string file = testing::TempDir() + name + std::to_string(getpid());
    remove(file.c_str());
    return file;
}

}  // namespace

TEST(Benchmark, TakesTheQuickestPlanOnce)
{
    in_benchmark("1,1,90,90,40", nullptr, [](const Module &module, void *device) {
        EXPECT_EQ(convolve(module, device, 4, 0), 18);
        EXPECT_EQ(last_engine(), 3) << "without a benchmark cuDNN's first";
        EXPECT_EQ(convolve(module, device), 18);
        EXPECT_EQ(last_engine(), 4);
        EXPECT_GT(cudnn_runs(false), 5);
        const int before = cudnn_runs(false);
        EXPECT_EQ(convolve(module, device), 18);
        EXPECT_EQ(last_engine(), 4);
        EXPECT_EQ(cudnn_runs(false), before + 1) << "and only once";
        EXPECT_EQ(Module::logged(), "");
    });
}

TEST(Benchmark, LeavesWhatAPlanAddsToAsItIs)
{
    in_benchmark("1,1,90,90,40", nullptr, [](const Module &module, void *device) {
        EXPECT_EQ(convolve_back(module, device, 5), 18 + 5);
        EXPECT_EQ(last_engine(), 4);
        EXPECT_GT(cudnn_runs(false), 5);
    });
}

// Expects the quickest engine, and no trace of the trials in the sums of query's gradient.
static void expect_attention(uint32_t flags, int engine)
{
    in_benchmark("60,1,90,40,70", nullptr, [&](const Module &, void *device) {
        AttentionCase c = {1, 2, 1, 3, 5, 8, 8};
        AttentionRun<float> own(device, c);
        c.flags = kBenchmark | flags;
        AttentionRun<uint16_t> run(device, c);
        std::vector<std::vector<float>> first;
        for (int time = 0; time < 2; ++time) {
            EXPECT_EQ(run.forward(), YOKE_OK);
            EXPECT_EQ(last_engine(), engine);
            EXPECT_EQ(run.backward(), YOKE_OK);
            EXPECT_EQ(last_engine(), engine);
            if (time == 0) first = run.read();
        }
        EXPECT_EQ(own.forward(), YOKE_OK);
        EXPECT_EQ(own.backward(), YOKE_OK);
        const auto wanted = own.read();
        EXPECT_EQ(run.read(), first);
        for (size_t k = 0; k < wanted.size(); ++k)
            for (size_t i = 0; i < wanted[k].size(); ++i)
                ASSERT_NEAR(first[k][i], wanted[k][i], 0.01) << k << ", " << i;
        EXPECT_EQ(Module::logged(), "");
    });
}

TEST(Benchmark, OfAttentionTakesTheQuickestOfEachPass)
{
    expect_attention(0, 3);
    expect_attention(YOKE_LAUNCH_CUDNN_NONDETERMINISTIC, 3);
}

TEST(Benchmark, TakesASumInAnyOrderIfThatIsAllowed)
{
    in_benchmark("1,1,90,90,40", nullptr, [](const Module &module, void *device) {
        constexpr uint32_t kAny = YOKE_LAUNCH_CUDNN_NONDETERMINISTIC | YOKE_LAUNCH_TF32;
        EXPECT_EQ(convolve(module, device, 4, kAny), 18);
        EXPECT_EQ(last_engine(), 2) << "without a benchmark cuDNN's first in order";
        EXPECT_EQ(convolve(module, device, 4, kBenchmark | kAny), 18);
        EXPECT_EQ(last_engine(), 0);
    });
}

TEST(Benchmark, IsLeftOutIfTheLaunchMustBeDeterministic)
{
    const std::string file = winners_file("yoke_no_winners_");
    in_benchmark("1,1,90,90,40", file.c_str(), [](const Module &module, void *device) {
        constexpr uint32_t kSame = kBenchmark | YOKE_LAUNCH_DETERMINISTIC;
        EXPECT_EQ(convolve(module, device, 4, kSame), 18);
        EXPECT_EQ(last_engine(), 3) << "cuDNN's first";
        EXPECT_EQ(cudnn_runs(false), 1);
        EXPECT_EQ(convolve(module, device), 18);
        EXPECT_EQ(last_engine(), 4);
        EXPECT_EQ(convolve(module, device, 4, kSame), 18);
        EXPECT_EQ(last_engine(), 3) << "not the winner of another launch";
    });
    EXPECT_NE(read(file), "");
    remove(file.c_str());
}

TEST(Benchmark, KeepsWinnersInAFile)
{
    const std::string file = winners_file("yoke_winners_");
    in_benchmark("1,1,90,90,40", file.c_str(), [](const Module &module, void *device) {
        EXPECT_EQ(convolve(module, device), 18);
    });
    const std::string line = read(file);
    EXPECT_EQ(line.find("cudnn 9"), 0u) << line;
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
    // An earlier winner is used at once, even if another plan is quicker now.
    in_benchmark("1,1,10,10,99", file.c_str(), [](const Module &module, void *device) {
        EXPECT_EQ(convolve(module, device), 18);
        EXPECT_EQ(last_engine(), 4);
        EXPECT_EQ(cudnn_runs(false), 1);
    });
    EXPECT_EQ(read(file), line);
    // Wrong lines: another version, another GPU, a cut line, an invalid engine, an invalid knob.
    const size_t version = line.find(' ') + 1, gpu = line.find(' ', version) + 1,
                 winner = line.rfind(' ') + 1;
    const auto with = [&](size_t at, const char *text) {
        std::string changed = line;
        return changed.replace(at, strlen(text), text);
    };
    for (const std::string &other :
         {with(version, "8"), with(gpu, "Another"), line.substr(0, winner + 10) + "\n",
          with(winner, "77"), with(winner + 32, "09"), with(winner + 16, "ff"),
          std::string("nonsense\n\n")}) {
        std::ofstream(file) << other;
        in_benchmark("1,1,90,10,99", file.c_str(), [](const Module &module, void *device) {
            EXPECT_EQ(convolve(module, device), 18);
            EXPECT_EQ(last_engine(), 3);
            EXPECT_GT(cudnn_runs(false), 5);
        });
        EXPECT_EQ(read(file).find(other), 0u);
        EXPECT_GT(read(file).size(), other.size()) << "the new winner comes behind";
    }
    remove(file.c_str());
}

TEST(Benchmark, WaitsForTheEndOfACapture)
{
    const std::string file = winners_file("yoke_captured_");
    const auto capture = [](const Module &module, void *device, int engine) {
        void *stream = nullptr, *graph = nullptr;
        ASSERT_EQ(module->stream_create(device, 0, &stream), YOKE_OK);
        {
            AttentionCase c = {1, 1, 1, 2, 2, 8, 8};
            c.flags = kBenchmark;
            AttentionRun<uint16_t> run(device, c, stream);
            ASSERT_EQ(module->graph_begin(device, stream, kBenchmark), YOKE_OK);
            Module::keep_scratch();
            const int before = std::max(cudnn_runs(false), 0);
            EXPECT_EQ(run.forward(), YOKE_OK) << failure().message;
            EXPECT_EQ(cudnn_runs(false), before + 1);
            EXPECT_EQ(last_engine(), engine);
            ASSERT_EQ(module->graph_end(device, stream, &graph), YOKE_OK) << failure().message;
            EXPECT_EQ(module->graph_launch(device, graph, stream), YOKE_OK);
            EXPECT_EQ(module->stream_synchronize(device, stream), YOKE_OK);
            EXPECT_EQ(module->graph_destroy(device, graph), YOKE_OK);
            Module::give_scratch_back();
            EXPECT_EQ(run.forward(), YOKE_OK);
            EXPECT_EQ(last_engine(), 4);
            EXPECT_EQ(module->stream_synchronize(device, stream), YOKE_OK);
        }
        EXPECT_EQ(module->stream_destroy(device, stream), YOKE_OK);
    };
    in_benchmark("1,1,90,90,40", file.c_str(),
                 [&](const Module &module, void *device) { capture(module, device, 2); });
    EXPECT_NE(read(file), "");
    in_benchmark("1,1,10,10,99", file.c_str(), [&](const Module &module, void *device) {
        capture(module, device, 4);  // an earlier winner is used in a capture, too
    });
    remove(file.c_str());
}

TEST(Benchmark, EndsAfterSixtyFourShapesOfAnOpWithOneLine)
{
    in_benchmark("1,1,90,90,40", nullptr, [](const Module &module, void *device) {
        for (int64_t height = 3; height < 3 + 64; ++height) convolve(module, device, height);
        EXPECT_EQ(last_engine(), 4);
        EXPECT_EQ(Module::logged(), "");
        const int before = cudnn_runs(false);
        for (int time = 0; time < 2; ++time)
            for (int64_t height = 67; height < 70; ++height) {
                convolve(module, device, height);
                EXPECT_EQ(last_engine(), 3);
            }
        EXPECT_EQ(cudnn_runs(false), before + 6);
        const std::string log = Module::logged();
        EXPECT_NE(log.find("conv: cuDNN's plans for 64 shapes were measured"), log.npos) << log;
        EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
        EXPECT_EQ(convolve_back(module, device, 0), 18);
        EXPECT_EQ(last_engine(), 4) << "of another op there may be as many";
    });
}

}  // namespace yoke::test
