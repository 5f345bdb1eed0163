// Memory of the host program as tensors, and bytes between host and device.
#include "core/select/select.h"
#include "core/tensor/tensor.h"
#include "tests/core/cpu.h"
#include "tests/core/expect_error.h"

#include <array>
#include <vector>

namespace yoke {
namespace {

using test::cpu;
using test::expect_error;

constexpr const char *kCall = "yoke_tensor_from_memory";

void count_drop(void *user)
{
    ++*static_cast<int *>(user);
}

TEST(TensorMemory, BorrowedMemoryIsNeitherCopiedNorFreed)
{
    std::array<float, 6> data = {0, 1, 2, 3, 4, 5};
    Tensor t =
        from_memory(data.data(), Dims{2, 3}, nullptr, YOKE_F32, cpu(), nullptr, nullptr, kCall);
    EXPECT_EQ(t->data, reinterpret_cast<char *>(data.data()));
    EXPECT_EQ(t->storage->bytes, 24u);
    EXPECT_EQ(to_string(t->strides()), "[3, 1]");
    data[5] = 50;
    EXPECT_EQ(reinterpret_cast<float *>(t->data)[5], 50);
}

TEST(TensorMemory, DropRunsOnceAfterTheLastView)
{
    int drops = 0;
    std::array<int64_t, 4> data{};
    Tensor t =
        from_memory(data.data(), Dims{4}, nullptr, YOKE_I64, cpu(), count_drop, &drops, kCall);
    Tensor view = alias(*t), copy = view;
    t = nullptr;
    view = nullptr;
    EXPECT_EQ(drops, 0);
    copy = nullptr;
    EXPECT_EQ(drops, 1);
}

TEST(TensorMemory, DropRunsOnceForAnEmptyTensor)
{
    int drops = 0;
    from_memory(nullptr, Dims{0, 3}, nullptr, YOKE_F32, cpu(), count_drop, &drops, kCall);
    EXPECT_EQ(drops, 1);
}

TEST(TensorMemory, NegativeStridesReachBelowTheFirstElement)
{
    std::array<int32_t, 6> data = {0, 1, 2, 3, 4, 5};
    const std::array<int64_t, 2> strides = {-3, -1};
    Tensor t =
        from_memory(&data[5], Dims{2, 3}, strides.data(), YOKE_I32, cpu(), nullptr, nullptr, kCall);
    EXPECT_EQ(t->storage->data, &data[0]);
    EXPECT_EQ(t->storage->bytes, sizeof data);
    EXPECT_EQ(byte_range(*t).begin, reinterpret_cast<char *>(&data[0]));
    EXPECT_EQ(byte_range(*t).bytes, sizeof data);
    EXPECT_FALSE(t->contiguous);
}

TEST(TensorMemory, WhatIsRefusedIsNotDropped)
{
    int drops = 0;
    const int64_t live = live_tensor_count();
    alignas(8) std::array<char, 64> data{};
    const auto make = [&](void *at, IntList shape, const int64_t *strides, yoke_dtype dtype) {
        from_memory(at, shape, strides, dtype, cpu(), count_drop, &drops, kCall);
    };
    expect_error(YOKE_E_VALUE, {kCall, "0x", "aligned", "4", "float32"},
                 [&] { make(&data[2], Dims{2}, nullptr, YOKE_F32); });
    expect_error(YOKE_E_VALUE, {kCall, "'data'", "NULL", "[2]"},
                 [&] { make(nullptr, Dims{2}, nullptr, YOKE_F32); });
    expect_error(YOKE_E_VALUE, {kCall, "[-1]"},
                 [&] { make(&data[0], Dims{-1}, nullptr, YOKE_F32); });
    expect_error(YOKE_E_TYPE, {kCall, "99"}, [&] { make(&data[0], Dims{1}, nullptr, 99); });
    EXPECT_EQ(drops, 0);
    EXPECT_EQ(live_tensor_count(), live);
}

TEST(TensorMemory, StridesBeyondTheAddressSpaceAreRefused)
{
    std::array<double, 4> data{};
    const auto refuse = [&](IntList shape, std::vector<int64_t> strides) {
        expect_error(YOKE_E_VALUE,
                     {kCall, "strides", to_string(strides).c_str(), to_string(shape).c_str()}, [&] {
                         from_memory(data.data(), shape, strides.data(), YOKE_F64, cpu(), nullptr,
                                     nullptr, kCall);
                     });
    };
    refuse(Dims{2}, {INT64_MAX});
    refuse(Dims{2}, {INT64_MIN});
    refuse(Dims{3}, {INT64_MAX / 2 + 1});
    refuse(Dims{2, 2}, {INT64_MAX / 8, INT64_MAX / 8});
    refuse(Dims{2, 2}, {INT64_MAX / 16, -(INT64_MAX / 16)});
    refuse(Dims{2}, {-(int64_t{1} << 59)});  // below address 0
    refuse(Dims{1}, {INT64_MAX / 4});        // never stepped, but a slice could start there
}

TEST(TensorMemory, StridesOfAnEmptyTensorMeanNothing)
{
    const std::array<int64_t, 2> strides = {INT64_MAX, INT64_MIN};
    Tensor t =
        from_memory(nullptr, Dims{0, 2}, strides.data(), YOKE_F64, cpu(), nullptr, nullptr, kCall);
    EXPECT_EQ(to_string(t->strides()), "[2, 1]");
}

TEST(TensorMemory, BytesGoToTheDeviceAndBackUnchanged)
{
    const std::array<int32_t, 4> in = {1, -2, 3, INT32_MIN};
    std::array<int32_t, 4> out{};
    Tensor t = make_tensor(cpu(), YOKE_I32, Dims{2, 2}, "test");
    const uint32_t version = t->storage->version.load();
    copy_from_host(*t, in.data(), sizeof in, "test");
    EXPECT_EQ(t->storage->version.load(), version + 1) << "a write steps the version";
    copy_to_host(*t, out.data(), sizeof out, "test");
    EXPECT_EQ(t->storage->version.load(), version + 1) << "a read does not";
    EXPECT_EQ(in, out);
}

TEST(TensorMemory, ACopyOfAnotherSizeNamesBothSizes)
{
    std::array<int32_t, 8> host{};
    Tensor t = make_tensor(cpu(), YOKE_I32, Dims{2, 2}, "test");
    expect_error(YOKE_E_VALUE, {"yoke_tensor_copy_to_host", "'bytes'", "32", "16", "[2, 2] int32"},
                 [&] { copy_to_host(*t, host.data(), 32, "yoke_tensor_copy_to_host"); });
    expect_error(YOKE_E_VALUE, {"yoke_tensor_copy_from_host", "'bytes'", "8", "16"},
                 [&] { copy_from_host(*t, host.data(), 8, "yoke_tensor_copy_from_host"); });
    EXPECT_EQ(t->storage->version.load(), 0u);
}

}  // namespace
}  // namespace yoke
