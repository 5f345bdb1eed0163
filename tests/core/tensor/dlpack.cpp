// DLPack both ways, and wrong producers: core/tensor/dlpack.cpp.
#include "core/tensor/dlpack.h"
#include "core/select/select.h"
#include "tests/core/cpu.h"
#include "tests/core/expect_error.h"

#include <array>
#include <thread>
#include <type_traits>
#include <vector>

namespace yoke {
namespace {

using namespace dlpack;
using test::cpu;
using test::expect_error;

constexpr const char *kTo = "yoke_tensor_to_dlpack", *kFrom = "yoke_tensor_from_dlpack";

// Tensor of another library: 2 × 3 float32 in row-major order unless a test changes the fields.
template <class Managed>
struct Producer {
    alignas(64) std::array<float, 12> data = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    std::array<int64_t, YOKE_MAX_NDIM + 1> shape = {2, 3}, strides = {3, 1};
    int deleted = 0;
    Managed managed{};

    Producer()
    {
        managed.dl_tensor = {data.data(),  {kDLCPU, 0},    2, {kDLFloat, 32, 1},
                             shape.data(), strides.data(), 0};
        managed.manager_ctx = this;
        managed.deleter = [](Managed *self) {
            ++static_cast<Producer *>(self->manager_ctx)->deleted;
        };
        if constexpr (kVersioned) managed.version = {1, 1};
    }

    static constexpr bool kVersioned = std::is_same_v<Managed, DLManagedTensorVersioned>;
    DLTensor &t() { return managed.dl_tensor; }
    Tensor import() { return from_dlpack(&managed, kVersioned); }
    void refuses(yoke_status status, std::initializer_list<const char *> parts)
    {
        const int64_t live = live_tensor_count();
        expect_error(status, parts, [this] { import(); });
        EXPECT_EQ(deleted, 0) << "what is refused stays the producer's";
        EXPECT_EQ(live_tensor_count(), live);
    }
};

template <class Managed>
class Dlpack : public testing::Test {
};
using BothStructs = testing::Types<DLManagedTensor, DLManagedTensorVersioned>;
TYPED_TEST_SUITE(Dlpack, BothStructs);

template <class Managed>
Managed *exported(const yoke_tensor &x)
{
    return static_cast<Managed *>(to_dlpack(x, Producer<Managed>::kVersioned));
}

TYPED_TEST(Dlpack, ImportSharesMemoryAndDeletesOnceAfterTheLastView)
{
    Producer<TypeParam> producer;
    Tensor t = producer.import();
    EXPECT_EQ(t->data, reinterpret_cast<char *>(producer.data.data()));
    EXPECT_EQ(describe(*t), "[2, 3] float32 on cpu");
    Tensor view = alias(*t);
    t = nullptr;
    EXPECT_EQ(producer.deleted, 0);
    view = nullptr;
    EXPECT_EQ(producer.deleted, 1);
}

TYPED_TEST(Dlpack, ExportSharesMemoryAndHoldsTheTensorUntilDeleted)
{
    const int64_t live = live_tensor_count();
    Tensor t = make_tensor(cpu(), YOKE_F32, Dims{2, 3}, "test");
    const char *data = t->data;
    TypeParam *managed = exported<TypeParam>(*t);
    t = nullptr;
    EXPECT_EQ(managed->dl_tensor.data, data);
    EXPECT_EQ(managed->dl_tensor.byte_offset, 0u);
    EXPECT_EQ(managed->dl_tensor.device.device_type, kDLCPU);
    EXPECT_EQ(managed->dl_tensor.device.device_id, 0);
    EXPECT_EQ(managed->dl_tensor.ndim, 2);
    EXPECT_EQ(managed->dl_tensor.shape[1], 3);
    ASSERT_NE(managed->dl_tensor.strides, nullptr) << "consumers of DLPack 1.2 expect strides";
    EXPECT_EQ(managed->dl_tensor.strides[0], 3);
    static_cast<float *>(managed->dl_tensor.data)[5] = 1;  // Yoke may still write
    EXPECT_EQ(live_tensor_count(), live + 1);
    std::thread([managed] { managed->deleter(managed); }).join();  // any thread may
    EXPECT_EQ(live_tensor_count(), live);
}

TYPED_TEST(Dlpack, EveryDtypeGoesOutAndComesBack)
{
    struct Row {
        yoke_dtype dtype;
        uint8_t code, bits;
    };
    const Row rows[] = {{YOKE_F64, kDLFloat, 64},
                        {YOKE_F32, kDLFloat, 32},
                        {YOKE_F16, kDLFloat, 16},
                        {YOKE_BF16, kDLBfloat, 16},
                        {YOKE_I64, kDLInt, 64},
                        {YOKE_I32, kDLInt, 32},
                        {YOKE_I8, kDLInt, 8},
                        {YOKE_U8, kDLUInt, 8},
                        {YOKE_BOOL, kDLBool, 8},
                        {YOKE_F8_E4M3, kDLFloat8_e4m3fn, 8},
                        {YOKE_F8_E5M2, kDLFloat8_e5m2, 8}};
    ASSERT_EQ(std::size(rows), size_t{YOKE_DTYPE_COUNT - 1});
    for (const Row &row : rows) {
        SCOPED_TRACE(name(row.dtype));
        Tensor t = make_tensor(cpu(), row.dtype, Dims{3}, "test");
        TypeParam *managed = exported<TypeParam>(*t);
        EXPECT_EQ(managed->dl_tensor.dtype.code, row.code);
        EXPECT_EQ(managed->dl_tensor.dtype.bits, row.bits);
        EXPECT_EQ(managed->dl_tensor.dtype.lanes, 1);
        Tensor back = from_dlpack(managed, Producer<TypeParam>::kVersioned);
        EXPECT_EQ(back->dtype, row.dtype);
        EXPECT_EQ(back->data, t->data);
        EXPECT_TRUE(shares_memory(*back, *t));
    }
}

TYPED_TEST(Dlpack, StridesOfAnySignAndByteOffsetsAreKept)
{
    Producer<TypeParam> producer;
    producer.strides = {-3, -1};
    producer.t().byte_offset = 5 * sizeof(float);
    {
        Tensor t = producer.import();
        EXPECT_EQ(t->data, reinterpret_cast<char *>(&producer.data[5]));
        EXPECT_EQ(byte_range(*t).begin, reinterpret_cast<char *>(&producer.data[0]));
        EXPECT_EQ(to_string(t->strides()), "[-3, -1]");
        TypeParam *again = exported<TypeParam>(*t);
        EXPECT_EQ(again->dl_tensor.data, &producer.data[5]);
        EXPECT_EQ(again->dl_tensor.strides[1], -1);
        again->deleter(again);
    }
    EXPECT_EQ(producer.deleted, 1);
}

TYPED_TEST(Dlpack, AbsentStridesMeanRowMajor)
{
    Producer<TypeParam> producer;
    producer.t().strides = nullptr;
    EXPECT_EQ(to_string(producer.import()->strides()), "[3, 1]");
}

TYPED_TEST(Dlpack, ScalarsNeedNoShapeAndEmptyArraysNoData)
{
    Producer<TypeParam> scalar, empty;
    scalar.t().ndim = 0;
    scalar.t().shape = scalar.t().strides = nullptr;
    EXPECT_EQ(scalar.import()->numel, 1);
    empty.shape = {0, 3};
    empty.t().data = nullptr;
    empty.t().byte_offset = 3;  // has no effect here
    Tensor t = empty.import();
    EXPECT_EQ(describe(*t), "[0, 3] float32 on cpu");
    TypeParam *again = exported<TypeParam>(*t);
    EXPECT_EQ(again->dl_tensor.data, nullptr);
    again->deleter(again);
}

TYPED_TEST(Dlpack, AProducerWithoutDeleterIsServed)
{
    Producer<TypeParam> producer;
    producer.managed.deleter = nullptr;
    producer.import();
    EXPECT_EQ(producer.deleted, 0);
}

TYPED_TEST(Dlpack, PinnedHostMemoryCountsAsCpu)
{
    Producer<TypeParam> producer;
    producer.t().device = {kDLCUDAHost, 2};
    EXPECT_EQ(describe(*producer.import()), "[2, 3] float32 on cpu");
}

TYPED_TEST(Dlpack, ForeignAndMissingDevicesAreRefusedByName)
{
    Producer<TypeParam> producer;
    producer.t().device = {10, 0};
    producer.refuses(YOKE_E_UNSUPPORTED, {kFrom, "10", "rocm", "cpu"});
    producer.t().device = {-7, 0};
    producer.refuses(YOKE_E_UNSUPPORTED, {kFrom, "-7"});
    producer.t().device = {kDLCUDA, 12345};  // no machine has this device
    producer.refuses(YOKE_E_UNAVAILABLE, {});
}

TYPED_TEST(Dlpack, TypesThatYokeLacksAreRefusedByName)
{
    Producer<TypeParam> producer;
    const auto refuse = [&](DLDataType dtype, std::initializer_list<const char *> parts) {
        producer.t().dtype = dtype;
        producer.refuses(YOKE_E_TYPE, parts);
    };
    refuse({kDLInt, 16, 1}, {kFrom, "int", "16 bits"});
    refuse({kDLUInt, 64, 1}, {"uint", "64 bits"});
    refuse({5, 64, 1}, {"complex", "64 bits"});
    refuse({kDLBool, 1, 1}, {"bool", "1 bits"});
    refuse({kDLFloat, 32, 4}, {"float", "4 lanes"});
    refuse({kDLFloat, 32, 0}, {"0 lanes"});
    refuse({200, 8, 1}, {"code 200"});
}

TYPED_TEST(Dlpack, ShapesAndAddressesThatCannotBeAreRefused)
{
    using P = Producer<TypeParam>;
    const auto refuse = [](auto change, std::initializer_list<const char *> parts) {
        P producer;
        change(producer);
        producer.refuses(YOKE_E_VALUE, parts);
    };
    refuse([](P &p) { p.t().ndim = -1; }, {kFrom, "-1", "16"});
    refuse([](P &p) { p.t().ndim = YOKE_MAX_NDIM + 1; }, {kFrom, "17", "16"});
    refuse([](P &p) { p.t().ndim = INT32_MAX; }, {kFrom, "2147483647"});
    refuse([](P &p) { p.t().shape = nullptr; }, {kFrom, "'shape'", "NULL"});
    refuse([](P &p) { p.shape = {2, -3}; }, {kFrom, "[2, -3]", "each size must be 0 or more"});
    refuse([](P &p) { p.shape = {INT64_MAX, INT64_MAX}; }, {kFrom, "9223372036854775807"});
    refuse([](P &p) { p.strides = {INT64_MAX, 1}; }, {kFrom, "strides"});
    refuse([](P &p) { p.strides = {INT64_MIN, 1}; }, {kFrom, "strides"});
    refuse([](P &p) { p.t().data = nullptr; }, {kFrom, "NULL"});
    refuse([](P &p) { p.t().data = nullptr, p.t().byte_offset = 64; }, {kFrom, "NULL"});
    refuse([](P &p) { p.t().byte_offset = 2; }, {kFrom, "aligned"});
    refuse([](P &p) { p.t().byte_offset = UINT64_MAX; },
           {kFrom, "byte_offset", "18446744073709551615"});
}

TYPED_TEST(Dlpack, WhatWasExportedHereComesBackAsItsOwnStorage)
{
    const std::vector<int64_t> shape{2, 3};
    const Tensor x = make_tensor(cpu(), YOKE_F32, shape, "test");
    const Tensor again = from_dlpack(exported<TypeParam>(*x), Producer<TypeParam>::kVersioned);
    EXPECT_EQ(again->storage.get(), x->storage.get());
    EXPECT_EQ(again->data, x->data);
    EXPECT_NE(again.get(), x.get());
}

TEST(DlpackVersions, AnotherMajorVersionIsRefusedWithBothNumbers)
{
    Producer<DLManagedTensorVersioned> producer;
    producer.managed.version = {2, 5};
    producer.refuses(YOKE_E_UNSUPPORTED, {kFrom, "2.5", "1.x", "max_version"});
    producer.managed.version = {0, 8};
    producer.refuses(YOKE_E_UNSUPPORTED, {"0.8"});
    producer.managed.version = {1, 99};
    EXPECT_EQ(producer.import()->numel, 6) << "a minor version only adds";
}

TEST(DlpackVersions, ReadOnlyDataIsRefusedWithItsRemedy)
{
    Producer<DLManagedTensorVersioned> producer;
    producer.managed.flags = kFlagReadOnly;
    producer.refuses(YOKE_E_UNSUPPORTED, {kFrom, "read-only", "copy"});
    producer.managed.flags = kFlagIsCopied;
    EXPECT_EQ(producer.import()->numel, 6);
}

TEST(DlpackVersions, ExportsSayTheirVersionAndNoFlags)
{
    Tensor t = make_tensor(cpu(), YOKE_U8, Dims{1}, "test");
    auto *managed = exported<DLManagedTensorVersioned>(*t);
    EXPECT_EQ(managed->version.major, 1u);
    EXPECT_EQ(managed->flags, 0u);
    managed->deleter(managed);
}

TEST(DlpackVersions, NullIsRefused)
{
    expect_error(YOKE_E_VALUE, {kFrom, "'managed'", "NULL"}, [] { from_dlpack(nullptr, true); });
    expect_error(YOKE_E_VALUE, {kFrom, "'managed'", "NULL"}, [] { from_dlpack(nullptr, false); });
}

TEST(DlpackVersions, ATensorThatRequiresGradIsRefused)
{
    Tensor t = make_tensor(cpu(), YOKE_F32, Dims{2}, "test");
    t->node = Ref<RefCounted>::share(t->storage.get());  // any counted object serves as a node here
    for (const bool versioned : {false, true})
        expect_error(YOKE_E_STATE, {kTo, "[2] float32 on cpu", "requires grad", "detach"},
                     [&] { to_dlpack(*t, versioned); });
    Tensor detached = alias(*t);
    auto *managed = exported<DLManagedTensor>(*detached);
    managed->deleter(managed);
}

// Devices are told apart by kind and index alone, so a stand-in with host memory shows the mapping.
TEST(DlpackVersions, DevicesAreExportedByKindAndIndex)
{
    yoke_backend backend{};
    yoke_device device;
    device.backend = &backend;
    device.index = 3;
    std::array<float, 2> data{};
    const auto tensor = [&] {
        return from_memory(data.data(), Dims{2}, nullptr, YOKE_F32, device, nullptr, nullptr,
                           "test");
    };
    backend.kind = "cuda";
    auto *managed = exported<DLManagedTensor>(*tensor());
    EXPECT_EQ(managed->dl_tensor.device.device_type, kDLCUDA);
    EXPECT_EQ(managed->dl_tensor.device.device_id, 3);
    managed->deleter(managed);
    backend.kind = "sim";
    device.name = "sim:3";
    const int64_t live = live_tensor_count();
    expect_error(YOKE_E_UNSUPPORTED, {kTo, "sim:3", "cpu"}, [&] { to_dlpack(*tensor(), true); });
    EXPECT_EQ(live_tensor_count(), live);
}

}  // namespace
}  // namespace yoke
