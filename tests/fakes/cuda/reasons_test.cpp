// Reasons for which CUDA cannot be used. Every reason comes with advice, and the host program goes on without CUDA.
#include "core/backend/ops.inc"
#include "core/backend/registry.h"
#include "core/base/error.h"
#include "core/base/library.h"
#include "core/device/availability.h"
#include "core/device/device.h"
#include "core/device/kinds.h"
#include "core/select/select.h"
#include "kernels/cuda/host/floors.h"
#include "tests/core/fresh_process.h"

#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>

namespace yoke::test {

struct Case {
    const char *folder;   // for YOKE_CUDA_LIB_PATH
    const char *fail;     // FAKE_CUDA_FAIL
    const char *version;  // FAKE_CUDA_VERSION
    const char *devices;  // FAKE_CUDA_DEVICES
    bool defect;
    std::vector<const char *> says;
};

void set(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

// Runs in a fresh process, because the driver is examined once.
void expect_reason(const Case &one)
{
    in_fresh_process([&] {
        set("YOKE_CUDA_LIB_PATH", one.folder);
        set("FAKE_CUDA_FAIL", one.fail);
        set("FAKE_CUDA_VERSION", one.version);
        set("FAKE_CUDA_DEVICES", one.devices);
        const Availability cuda = Availability::of("cuda");
        const std::string why = cuda.text();
        EXPECT_EQ(cuda.is_defect(), one.defect) << why;
        for (const char *text : one.says)
            EXPECT_NE(why.find(text), std::string::npos) << "'" << text << "' is not in: " << why;
    });
}

constexpr const char *kDriver = FOLDER "/driver";

TEST(Reasons, ADriverThatIsNotThereIsToBeInstalled)
{
    if (void *there = dlopen("libcuda.so.1", RTLD_LAZY)) {
        dlclose(there);
        GTEST_SKIP() << "this machine has a driver";
    }
    unsetenv("CUDA_VISIBLE_DEVICES");
    expect_reason({FOLDER "/nowhere",
                   nullptr,
                   nullptr,
                   nullptr,
                   false,
                   {"there is no libcuda.so.1, nor in YOKE_CUDA_LIB_PATH, " FOLDER "/nowhere",
                    "no NVIDIA driver is installed", "install release 5", "--gpus all"}});
}

TEST(Reasons, ADriverThatIsNoLibraryIsNamed)
{
    expect_reason({FOLDER "/broken",
                   nullptr,
                   nullptr,
                   nullptr,
                   true,
                   {FOLDER "/broken/libcuda.so.1", "cannot be loaded", "YOKE_CUDA_LIB_PATH"}});
}

TEST(Reasons, TheFirstFolderThatHasADriverDecides)
{
    expect_reason({FOLDER "/nowhere::" FOLDER "/broken:" FOLDER "/driver",
                   nullptr,
                   nullptr,
                   nullptr,
                   true,
                   {FOLDER "/broken/libcuda.so.1"}});
}

TEST(Reasons, TheToolkitsStubIsNoDriver)
{
    if (!std::ifstream(FOLDER "/stub/libcuda.so.1")) GTEST_SKIP() << "this toolkit has no stub";
    expect_reason({FOLDER "/stub",
                   nullptr,
                   nullptr,
                   nullptr,
                   true,
                   {FOLDER "/stub/libcuda.so.1", "stub", "LD_LIBRARY_PATH"}});
}

TEST(Reasons, AnOldDriverIsToldWhatItSpeaksAndWhichOneServes)
{
    const int needed = cuda::floor_of(CUDA_VERSION).version;
    const std::string needs =
        format("this module needs CUDA %d.%d;", needed / 1000, needed % 1000 / 10);
    const auto expect_old = [&](const char *version, const char *speaks, const char *end) {
        expect_reason({kDriver,
                       nullptr,
                       version,
                       nullptr,
                       true,
                       {speaks, needs.c_str(), "install driver release 5", end}});
    };
    expect_old("11040", "supports CUDA 11.4", " or newer");
    expect_old("12000", "supports CUDA 12.0", " or newer");
    if (needed >= 13000) expect_old("12080", "supports CUDA 12.8", "built with CUDA 12");
}

TEST(Reasons, AFailureToStartIsNamedWithItsRemedy)
{
    struct Failure {
        const char *fail;
        const char *name;
        const char *remedy;
    };
    constexpr Failure failures[] = {
        {"cuInit=3", "FAKE_ERROR_3 (3)", "spawn or exec"},
        {"cuInit=46", "FAKE_ERROR_46 (46)", "nvidia-smi -c 0"},
        {"cuInit=101", "FAKE_ERROR_101 (101)", "CUDA_VISIBLE_DEVICES"},
        {"cuInit=304", "FAKE_ERROR_304 (304)", "/dev/nvidia*"},
        {"cuInit=802", "FAKE_ERROR_802 (802)", "nvidia-fabricmanager"},
        {"cuInit=803", "FAKE_ERROR_803 (803)", "restart the machine after a driver update"},
        {"cuInit=804", "FAKE_ERROR_804 (804)", "cuda-compat"},
        {"cuInit=999", "FAKE_ERROR_999 (999)", "nvidia_uvm"},
        {"cuInit=12345", "FAKE_ERROR_12345 (12345)", "nvidia-smi"},
        {"cuDeviceGetCount=999", "cuDeviceGetCount failed", "nvidia_uvm"},
        {"cuDeviceGet=101", "FAKE_ERROR_101 (101)", "nvidia-smi -L"},
    };
    for (const Failure &f : failures)
        expect_reason({kDriver, f.fail, nullptr, nullptr, true, {f.name, f.remedy}});
}

TEST(Reasons, NoGpuIsNoDefect)
{
    unsetenv("CUDA_VISIBLE_DEVICES");
    expect_reason(
        {kDriver, nullptr, nullptr, "", false, {"finds no GPU", "nvidia-smi -L", "--gpus all"}});
}

TEST(Reasons, AVariableThatHidesEveryGpuIsQuoted)
{
    in_fresh_process([] {
        setenv("YOKE_CUDA_LIB_PATH", kDriver, 1);
        setenv("FAKE_CUDA_DEVICES", "", 1);
        setenv("CUDA_VISIBLE_DEVICES", "7,nonsense", 1);
        const std::string why = Availability::of("cuda").text();
        EXPECT_NE(why.find("CUDA_VISIBLE_DEVICES is '7,nonsense'"), std::string::npos) << why;
    });
}

TEST(Reasons, AGpuThatTheModuleHasNoCodeForIsNamed)
{
    expect_reason({kDriver,
                   nullptr,
                   nullptr,
                   "3.5,7.0",
                   true,
                   {"GPU 0 (Fake GPU 0) has compute capability 3.5",
                    "GPU 1 (Fake GPU 1) has compute capability 7.0", "built for " YOKE_CUDA_ARCHS,
                    "YOKE_CUDA_ARCHS"}});
}

TEST(Reasons, AGpuWhoseNameCannotBeHadSaysSoInItsPlace)
{
    expect_reason({kDriver,
                   "cuDeviceGetName@2=999",
                   nullptr,
                   "3.5,7.0",
                   true,
                   {"GPU 0 (Fake GPU 0) has", "GPU 1 (cuDeviceGetName failed with 999) has"}});
}

TEST(Reasons, ASpecThatNamesCudaFailsWithTheReason)
{
    in_fresh_process([] {
        setenv("YOKE_CUDA_LIB_PATH", kDriver, 1);
        setenv("FAKE_CUDA_FAIL", "cuInit=803", 1);
        try {
            open_device("cuda:0");
            ADD_FAILURE() << "it was opened";
        } catch (const Error &error) {
            EXPECT_EQ(error.status(), YOKE_E_UNAVAILABLE);
            EXPECT_NE(std::string(error.what()).find("restart the machine"), std::string::npos)
                << error.what();
        }
    });
}

TEST(Reasons, AModuleOfAnotherOpTableIsRefused)
{
    const Backend other = detail::open_module("cuda", FOLDER "/other_table");
    EXPECT_EQ(other.table, nullptr);
    EXPECT_TRUE(other.defect);
    EXPECT_EQ(
        other.reason,
        format(
            FOLDER
            "/other_table/libyoke_cuda.so was built from another op table (hash "
            "0123456789abcdef, but this library's is %016llx); rebuild it or install the matching module",
            static_cast<unsigned long long>(YOKE_OP_TABLE_HASH)));
}

TEST(Reasons, TheModuleLoadsAndExportsItsOneSymbol)
{
    const Backend module =
        detail::open_module("cuda", std::string(MODULE).substr(0, std::string(MODULE).rfind('/')));
    ASSERT_NE(module.table, nullptr) << module.reason;
    EXPECT_STREQ(module.table->kind, "cuda");
    FILE *names = popen("nm -D --defined-only --format=posix " MODULE, "r");
    ASSERT_NE(names, nullptr);
    std::array<char, 4096> text{};
    const size_t read = fread(text.data(), 1, text.size() - 1, names);
    ASSERT_EQ(pclose(names), 0);
    const std::string symbols(text.data(), read);
    EXPECT_EQ(symbols.find("yoke_backend_get_v1 T"), 0u) << symbols;
    EXPECT_EQ(symbols.find('\n'), symbols.size() - 1) << "one line for one symbol: " << symbols;
}

}  // namespace yoke::test
