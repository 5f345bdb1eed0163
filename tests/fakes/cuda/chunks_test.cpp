// Chunks of virtual memory: the module's requests to the driver, and the effects of a failed map.
#include "tests/core/fresh_process.h"
#include "tests/fakes/cuda/opened.h"

namespace yoke::test {

// Chunk of a page, and a range of the chunk's size.
struct Chunk {
    Module module;
    const yoke_backend &table = *module.table;
    void *device = module.open(0), *range = nullptr;
    uint64_t page = 0, chunk = 0;

    Chunk()
    {
        EXPECT_EQ(table.vmm_granularity(device, &page), YOKE_OK);
        EXPECT_EQ(table.vmm_reserve(device, page, &range), YOKE_OK);
        EXPECT_EQ(table.vmm_create(device, page, &chunk), YOKE_OK);
    }
    // Unmaps and destroys the chunk.
    void give_back() const
    {
        EXPECT_EQ(table.vmm_unmap(device, range, page), YOKE_OK);
        EXPECT_EQ(table.vmm_destroy(device, chunk), YOKE_OK);
        EXPECT_EQ(table.vmm_release(device, range, page), YOKE_OK);
    }
};

// "Shareable" chunks are NVIDIA's name for chunks accepted by IPC and network cards. If the device supports such
// chunks, the module creates each chunk with a handle type and a flag.
TEST(Chunks, ChunksMayBeSharedWhereTheDeviceCan)
{
    const auto shareable = [](const char *variable, const char *value) {
        in_fresh_process([&] {
            Module module;
            void *device = module.open(0);
            const yoke_backend &table = *module.table;
            uint64_t first = 0, second = 0;
            if (variable) setenv(variable, value, 1);
            ASSERT_EQ(table.vmm_create(device, 2 << 20, &first), YOKE_OK);
            if (variable) unsetenv(variable);
            ASSERT_EQ(table.vmm_create(device, 2 << 20, &second), YOKE_OK);
            const auto held = module.call<decltype(&::fake_held)>("fake_held");
            EXPECT_EQ(held(FAKE_CHUNKS), 2);
            EXPECT_EQ(held(FAKE_SHAREABLE), variable ? 0 : 2);
            for (const uint64_t chunk : {first, second})
                EXPECT_EQ(table.vmm_destroy(device, chunk), YOKE_OK);
            EXPECT_EQ(held(FAKE_SHAREABLE), 0);
        });
    };
    shareable(nullptr, "");
    shareable("FAKE_CUDA_UNSHARED", "1");
    shareable("FAKE_CUDA_FAIL",
              "cuMemCreate@1=800");  // after a refusal, no further request
    shareable("FAKE_CUDA_FAIL", "cuMemCreate@1=801");
}

TEST(Chunks, AMapThatCannotBeMadeAccessibleIsUndone)
{
    in_fresh_process([] {
        Chunk all;
        auto &[module, table, device, range, page, chunk] = all;
        setenv("FAKE_CUDA_FAIL", "cuMemSetAccess=2", 1);
        expect_says(YOKE_E_OOM, table.vmm_map(device, range, page, chunk), {"cuMemSetAccess"});
        unsetenv("FAKE_CUDA_FAIL");
        EXPECT_EQ(table.vmm_map(device, range, page, chunk), YOKE_OK)
            << "the chunk is free to be mapped";
        all.give_back();
    });
}

TEST(Chunks, AMapThatCannotBeUndoneEitherIsKnownToBeThere)
{
    in_fresh_process([] {
        Chunk all;
        auto &[module, table, device, range, page, chunk] = all;
        setenv("FAKE_CUDA_FAIL", "cuMemSetAccess=2,cuMemUnmap=999", 1);
        expect_says(YOKE_E_OOM, table.vmm_map(device, range, page, chunk), {"cuMemSetAccess"});
        unsetenv("FAKE_CUDA_FAIL");
        expect_says(YOKE_E_STATE, table.vmm_destroy(device, chunk), {"still mapped"});
        all.give_back();
    });
}

}  // namespace yoke::test
