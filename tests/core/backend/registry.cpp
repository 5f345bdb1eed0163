// Accepted backends, and the messages about refused backends.
#include "core/backend/registry.h"
#include "core/backend/comm.h"
#include "core/base/config.h"
#include "core/base/library.h"
#include "tests/core/expect_error.h"
#include "tests/core/fake_backend.h"
#include "tests/core/fresh_process.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

namespace yoke {
namespace {

using test::expect_error;
using test::fake;

std::string refused(const std::function<void(yoke_backend &)> &change)
{
    yoke_backend table = test::fake_table("fake");
    change(table);
    return detail::refusal("fake", table, "/lib/libyoke_fake.so");
}

void expect_parts(const std::string &text, std::initializer_list<const char *> parts)
{
    for (const char *part : parts)
        EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

TEST(BackendRegistry, AWholeTableIsAccepted)
{
    EXPECT_EQ(refused([](yoke_backend &) {}), "");
}

TEST(BackendRegistry, ATableOfAnotherAbiIsRefusedByNumber)
{
    expect_parts(refused([](yoke_backend &table) { table.abi = 999; }),
                 {"/lib/libyoke_fake.so", "999", "install the matching module"});
}

TEST(BackendRegistry, ATableOfAnotherSizeIsRefused)
{
    expect_parts(refused([](yoke_backend &table) { table.struct_size = 8; }), {"8 bytes"});
}

TEST(BackendRegistry, ATableOfAnotherKindIsRefused)
{
    expect_parts(refused([](yoke_backend &table) { table.kind = "other"; }), {"'other'", "'fake'"});
    expect_parts(refused([](yoke_backend &table) { table.kind = nullptr; }), {"''", "'fake'"});
}

TEST(BackendRegistry, AnotherOpTableIsRefusedWithBothHashes)
{
    const std::string text = refused([](yoke_backend &table) { table.op_table_hash = 0xabc; });
    expect_parts(text, {"/lib/libyoke_fake.so was built from another op table", "0000000000000abc",
                        "rebuild it or install the matching module"});
    expect_parts(text,
                 {format("%016llx", static_cast<unsigned long long>(YOKE_OP_TABLE_HASH)).c_str()});
}

TEST(BackendRegistry, AnotherNumberOfKernelsIsRefused)
{
    expect_parts(refused([](yoke_backend &table) { table.kernel_count = 1; }), {"1 kernels"});
}

TEST(BackendRegistry, ANullEntryThatMustBeThereIsNamed)
{
    expect_parts(refused([](yoke_backend &table) { table.mem_info = nullptr; }), {"'mem_info'"});
    expect_parts(refused([](yoke_backend &table) { table.kernels = nullptr; }), {"'kernels'"});
}

TEST(BackendRegistry, AGroupThatIsHalfThereIsRefused)
{
    expect_parts(refused([](yoke_backend &table) { table.host_alloc = test::fake_entries::alloc; }),
                 {"'host_free'"});
    yoke_backend_comm comm{};
    comm.struct_size = sizeof comm;
    comm.abi = YOKE_BACKEND_ABI - 1;
    const std::string former = "ABI " + std::to_string(YOKE_BACKEND_ABI - 1);
    expect_parts(refused([&](yoke_backend &table) { table.comm = &comm; }), {former.c_str()});
    comm.abi = YOKE_BACKEND_ABI;
    expect_parts(refused([&](yoke_backend &table) { table.comm = &comm; }), {"'unique_id'"});
}

TEST(BackendRegistry, AFailingGetIsAReasonWithTheBackendsOwnWords)
{
    fake.get_status = YOKE_E_UNSUPPORTED;
    const Backend backend = detail::open_table("fake", test::get_fake, "the fake");
    fake.get_status = YOKE_OK;
    EXPECT_EQ(backend.table, nullptr);
    EXPECT_TRUE(backend.defect);
    expect_parts(backend.reason, {"the fake", "told to fail"});
}

TEST(BackendRegistry, AModuleThatIsNotThereIsNoDefect)
{
    const Backend backend = detail::open_module("cuda", "/nowhere");
    EXPECT_EQ(backend.table, nullptr);
    EXPECT_FALSE(backend.defect);
    expect_parts(backend.reason, {"/nowhere/libyoke_cuda.so is not there", "install"});
}

TEST(BackendRegistry, AFileThatIsNoLibraryIsRefusedWithTheLoadersReason)
{
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("yoke_registry_" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    std::ofstream(folder / "libyoke_cuda.so") << "text";
    const Backend broken = detail::open_module("cuda", folder);
    std::filesystem::remove(folder / "libyoke_cuda.so");
    // Any library of the system serves as a foreign library.
    const void *cosine = Library::open("libm.so.6").find("cos");
    std::filesystem::create_symlink(folder_of_code(cosine) + "/libm.so.6",
                                    folder / "libyoke_cuda.so");
    const Backend foreign = detail::open_module("cuda", folder);
    std::filesystem::remove_all(folder);
    EXPECT_TRUE(broken.defect);
    expect_parts(broken.reason, {"cannot load", "libyoke_cuda.so", "too short"});
    EXPECT_TRUE(foreign.defect);
    expect_parts(foreign.reason, {"libyoke_cuda.so", "no symbol yoke_backend_get_v1"});
}

TEST(BackendRegistry, AnUnknownKindIsRefusedWithTheKnownOnes)
{
    expect_error(YOKE_E_VALUE, {"'tpu'", "cuda"}, [] { backend_of("tpu"); });
    expect_error(YOKE_E_VALUE, {"'sim'", "cuda"}, [] { backend_of("sim"); });
    EXPECT_FALSE(is_known_kind("sim"));
    EXPECT_TRUE(is_known_kind("cuda"));
}

TEST(BackendRegistry, ABackendIsOpenedOnceByManyThreads)
{
    test::in_fresh_process([] {
        register_backend("fake", test::get_fake);
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; ++i)
            threads.emplace_back([] { EXPECT_NE(backend_of("fake").table, nullptr); });
        for (std::thread &thread : threads) thread.join();
        EXPECT_EQ(fake.gets, 1);
    });
}

TEST(BackendRegistry, TheHostTableAnswersABackend)
{
    const yoke_host &host = detail::host_table();
    EXPECT_EQ(host.struct_size, sizeof host);
    EXPECT_EQ(host.abi, static_cast<uint32_t>(YOKE_BACKEND_ABI));
    EXPECT_EQ(host.config("YOKE_NO_SUCH_KEY"), nullptr);
    EXPECT_GE(host.num_threads(), 1);
    host.log(99, nullptr);
    void *block = nullptr;
    EXPECT_EQ(host.scratch_alloc(&block, 64, nullptr, 0, &block), YOKE_E_INTERNAL);
    expect_parts(take_backend_error(YOKE_E_INTERNAL, "scratch"), {"not open"});
}

TEST(BackendRegistry, PlatformsAreReadInOrderAndCheckedByName)
{
    test::in_fresh_process([] {
        setenv("YOKE_PLATFORMS", " cuda , fake", 1);
        register_backend("fake", test::get_fake);
        const Platforms chosen = platforms();
        EXPECT_TRUE(chosen.named);
        EXPECT_EQ(chosen.kinds, (std::vector<std::string>{"cuda", "fake"}));
        EXPECT_FALSE(chosen.allow("cpu"));
    });
    test::in_fresh_process([] {
        setenv("YOKE_PLATFORMS", "cuda,tpu", 1);
        expect_error(YOKE_E_VALUE, {"YOKE_PLATFORMS", "'tpu'", "cuda"}, [] { platforms(); });
    });
}

}  // namespace
}  // namespace yoke
