// Memory of the fake device: the part taken by the runtime's blocks and the driver's chunks.
#include <cstdlib>

#include "tests/fakes/cuda/alone.h"

namespace yoke::test {

namespace {

constexpr size_t kPage = size_t{2} << 20;

size_t free_now()
{
    size_t left = 0, total = 0;
    EXPECT_EQ(cudaMemGetInfo(&left, &total), cudaSuccess);
    return left;
}

// Virtual memory of the device, by the driver's calls.
struct Virtual : Device {
    CUresult create(CUmemGenericAllocationHandle *chunk, size_t bytes, int of = 0)
    {
        CUmemAllocationProp prop{};
        prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {of}};
        return call<decltype(&::cuMemCreate)>("cuMemCreate")(chunk, bytes, &prop, 0);
    }
    CUmemGenericAllocationHandle chunk(size_t bytes)
    {
        CUmemGenericAllocationHandle made = 0;
        EXPECT_EQ(create(&made, bytes), CUDA_SUCCESS);
        return made;
    }
    CUdeviceptr reserve(size_t bytes)
    {
        CUdeviceptr place = 0;
        EXPECT_EQ(
            call<decltype(&::cuMemAddressReserve)>("cuMemAddressReserve")(&place, bytes, 0, 0, 0),
            CUDA_SUCCESS);
        return place;
    }
    CUresult release(CUmemGenericAllocationHandle chunk)
    {
        return call<decltype(&::cuMemRelease)>("cuMemRelease")(chunk);
    }
    CUresult map(CUdeviceptr place, size_t bytes, CUmemGenericAllocationHandle chunk)
    {
        return call<decltype(&::cuMemMap)>("cuMemMap")(place, bytes, 0, chunk, 0);
    }
    CUresult unmap(CUdeviceptr place, size_t bytes)
    {
        return call<decltype(&::cuMemUnmap)>("cuMemUnmap")(place, bytes);
    }
};

}  // namespace

TEST(Pages, AreWhatAllocationsAreChargedIn)
{
    in_fresh_process([] {
        Device device;
        const size_t all = free_now();
        void *first = device.block(64);
        EXPECT_EQ(free_now(), all - kPage) << "a block takes a page";
        device.block(1000);
        EXPECT_EQ(free_now(), all - kPage) << "small ones share it";
        void *large = device.block(kPage + 1);
        EXPECT_EQ(free_now(), all - 3 * kPage) << "large ones have their own";
        EXPECT_EQ(cudaFree(large), cudaSuccess);
        EXPECT_EQ(cudaFree(first), cudaSuccess);
        EXPECT_EQ(free_now(), all - kPage);
        void *rest = nullptr;
        EXPECT_EQ(cudaMalloc(&rest, all - kPage + 1), cudaErrorMemoryAllocation);
    });
}

TEST(Pages, OfChunksAreChargedToo)
{
    setenv("FAKE_CUDA_MEMORY", "8", 1);
    in_fresh_process([] {
        Virtual device;
        const size_t all = free_now();
        const CUdeviceptr place = device.reserve(8 * kPage);
        EXPECT_EQ(free_now(), all) << "addresses cost nothing";
        CUmemGenericAllocationHandle chunks[4], more = 0;
        for (auto &chunk : chunks) chunk = device.chunk(kPage);
        EXPECT_EQ(free_now(), all - 4 * kPage);
        EXPECT_EQ(device.create(&more, kPage), CUDA_ERROR_OUT_OF_MEMORY);
        void *block = nullptr;
        EXPECT_EQ(cudaMalloc(&block, 64), cudaErrorMemoryAllocation);
        EXPECT_EQ(device.release(chunks[0]), CUDA_SUCCESS);
        EXPECT_EQ(free_now(), all - 3 * kPage);
        EXPECT_EQ(cudaMalloc(&block, 64), cudaSuccess) << "there is room for either";
        EXPECT_EQ(device.create(&more, kPage), CUDA_ERROR_OUT_OF_MEMORY);
        EXPECT_EQ(device.map(place, kPage, chunks[1]), CUDA_SUCCESS);
        EXPECT_EQ(free_now(), all - 4 * kPage) << "what is mapped is not charged again";
    });
    unsetenv("FAKE_CUDA_MEMORY");
}

TEST(Pages, OfAChunkStayUntilItIsReleasedAndUnmappedEverywhere)
{
    in_fresh_process([] {
        Virtual device;
        const size_t all = free_now();
        const CUdeviceptr place = device.reserve(8 * kPage);
        const auto chunk = device.chunk(2 * kPage);
        EXPECT_EQ(device.map(place, 2 * kPage, chunk), CUDA_SUCCESS);
        EXPECT_EQ(device.map(place + 4 * kPage, 2 * kPage, chunk), CUDA_SUCCESS);
        EXPECT_EQ(device.release(chunk), CUDA_SUCCESS);
        EXPECT_EQ(device.release(chunk), CUDA_ERROR_INVALID_VALUE) << "it is no handle any more";
        EXPECT_EQ(free_now(), all - 2 * kPage) << "its maps hold it";
        EXPECT_EQ(device.unmap(place, 2 * kPage), CUDA_SUCCESS);
        EXPECT_EQ(free_now(), all - 2 * kPage);
        EXPECT_EQ(device.unmap(place + 4 * kPage, 2 * kPage), CUDA_SUCCESS);
        EXPECT_EQ(free_now(), all);
        const auto other = device.chunk(kPage);
        EXPECT_EQ(device.map(place, kPage, other), CUDA_SUCCESS);
        EXPECT_EQ(device.unmap(place, kPage), CUDA_SUCCESS);
        EXPECT_EQ(free_now(), all - kPage) << "its handle holds it";
        EXPECT_EQ(device.release(other), CUDA_SUCCESS);
        EXPECT_EQ(free_now(), all);
    });
}

TEST(Pages, OfAChunkAreThoseOfItsDevice)
{
    setenv("FAKE_CUDA_DEVICES", "9.0,9.0", 1);
    in_fresh_process([] {
        Virtual device;
        const size_t all = free_now();
        CUmemGenericAllocationHandle chunk = 0;
        EXPECT_EQ(device.create(&chunk, kPage, 1), CUDA_SUCCESS);
        EXPECT_EQ(free_now(), all) << "it is the other's";
        EXPECT_EQ(device.create(&chunk, kPage, 2), CUDA_ERROR_INVALID_DEVICE);
    });
    unsetenv("FAKE_CUDA_DEVICES");
}

}  // namespace yoke::test
