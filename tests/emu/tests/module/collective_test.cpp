// The kernels of collectives: floats as keys and 16-bit floats as f32, there and back, by a rank that is alone.
#include <cstring>

#include "core/backend/comm.h"
#include "module.h"

namespace yoke::test {

namespace {

struct Alone {
    Module module;
    void *device = module.open(), *memory = nullptr, *comm = nullptr;
    static constexpr uint64_t kBytes = 1 << 20;

    Alone()
    {
        char id[YOKE_COMM_ID_BYTES] = {};
        EXPECT_EQ(engine().unique_id(id, 20), YOKE_OK) << failure().message;
        yoke_comm_member member{};
        member.struct_size = sizeof member;
        member.size = 1;
        member.device = device;
        member.id = id;
        member.timeout_s = 20;
        EXPECT_EQ(engine().init(&member, &comm), YOKE_OK) << failure().message;
        EXPECT_EQ(module->alloc(device, kBytes, &memory), YOKE_OK);
    }
    ~Alone()
    {
        engine().destroy(comm);
        EXPECT_EQ(module->free(device, memory, kBytes), YOKE_OK);
        module->device_close(device);
    }
    const yoke_backend_comm &engine() const { return *Module::table()->comm; }

    // Reduces in place a value of this rank alone, so the value must not change.
    void reduce(yoke_dtype dtype, int64_t count, int32_t reduction, uint32_t flags, char *bytes,
                uint64_t size)
    {
        yoke_comm_signature signature{};
        yoke_collective record{};
        record.struct_size = sizeof record;
        record.op = YOKE_COMM_ALL_REDUCE;
        record.signature = &signature;
        record.dtype = dtype;
        record.reduction = reduction;
        record.peer = -1;
        record.flags = flags;
        record.count = count;
        record.in = record.out = memory;
        record.timeout_s = 20;
        copy(memory, bytes, size, YOKE_COPY_HOST_TO_DEVICE);
        EXPECT_EQ(engine().call(comm, &record), YOKE_OK) << failure().message;
        copy(bytes, memory, size, YOKE_COPY_DEVICE_TO_HOST);
    }
    void copy(void *to, const void *from, uint64_t size, int32_t direction)
    {
        EXPECT_EQ(module->copy(device, to, from, size, direction, nullptr), YOKE_OK);
        EXPECT_EQ(module->stream_synchronize(device, nullptr), YOKE_OK);
    }
};

// Returns elements of a dtype: bit patterns of numbers, and a NaN at the end.
template <class K>
std::vector<K> patterns(K most, K nan)
{
    std::vector<K> all;
    constexpr auto kSign = static_cast<K>(K{1} << (sizeof(K) * 8 - 1));
    for (int i = 0; i < 5000; ++i) {
        const auto magnitude = static_cast<K>(static_cast<K>(i) * (most / 4999 + 1) % most);
        all.push_back(static_cast<K>(i % 2 ? magnitude | kSign : magnitude));
    }
    all.push_back(nan);
    return all;
}

template <class K>
void expect_unchanged(Alone &rank, yoke_dtype dtype, K most, K nan, bool is_wide = false)
{
    const std::vector<K> given = patterns(most, nan);
    const std::vector<int32_t> reductions =
        is_wide ? std::vector<int32_t>{YOKE_REDUCE_SUM}
                : std::vector<int32_t>{YOKE_REDUCE_MIN, YOKE_REDUCE_MAX};
    for (const int32_t reduction : reductions) {
        std::vector<K> found = given;
        rank.reduce(dtype, static_cast<int64_t>(found.size()), reduction,
                    is_wide ? YOKE_COMM_IN_F32 : 0, reinterpret_cast<char *>(found.data()),
                    found.size() * sizeof(K));
        EXPECT_EQ(found, given) << "dtype " << dtype << ", reduction " << reduction;
    }
}

}  // namespace

TEST(Collective, MinAndMaxOfARankAloneAreWhatItGives)
{
    Alone rank;
    expect_unchanged<uint64_t>(rank, YOKE_F64, 0x7ff0000000000000u, 0x7ff8000000000000u);
    expect_unchanged<uint32_t>(rank, YOKE_F32, 0x7f800000u, 0x7fc00000u);
    expect_unchanged<uint16_t>(rank, YOKE_F16, 0x7c00, 0x7e00);
    expect_unchanged<uint16_t>(rank, YOKE_BF16, 0x7f80, 0x7fc0);
    expect_unchanged<uint8_t>(rank, YOKE_F8_E4M3, 0x7e, 0x7f);
    expect_unchanged<uint8_t>(rank, YOKE_F8_E5M2, 0x7c, 0x7e);
}

TEST(Collective, SumsInF32OfARankAloneAreWhatItGives)
{
    Alone rank;
    expect_unchanged<uint16_t>(rank, YOKE_F16, 0x7c00, 0x7e00, true);
    expect_unchanged<uint16_t>(rank, YOKE_BF16, 0x7f80, 0x7fc0, true);
}

}  // namespace yoke::test
