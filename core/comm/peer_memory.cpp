#include "core/comm/peer_memory.h"

#include "core/backend/registry.h"
#include "core/base/error.h"
#include "core/device/free_memory.h"
#include "core/memory/memory.h"
#include "core/select/select.h"

#include <algorithm>
#include <utility>

namespace yoke {

namespace {

// Memory of an engine, until its tensor goes. The group does not own this memory, because the group's thread may be
// the last to release a tensor. A communicator on a device may end before the memory.
struct Lent {
    Device &device;
    const yoke_backend_comm &table;
    std::shared_ptr<Engine> kept;  // null for memory of a device
    std::weak_ptr<Engine> engine;
    void *memory;
    uint64_t bytes;

    Lent(Device &of, const std::shared_ptr<Engine> &maker, bool keeps_engine, void *made,
         uint64_t size)
        : device(of),
          table(maker->table()),
          kept(keeps_engine ? maker : nullptr),
          engine(maker),
          memory(made),
          bytes(size)
    {
        count_foreign(device, static_cast<int64_t>(bytes));
    }
    ~Lent()
    {
        if (const std::shared_ptr<Engine> held = memory ? engine.lock() : nullptr)
            held->free(memory, bytes);
        else if (memory)
            Engine::free_without(table, memory, bytes);
        count_foreign(device, -static_cast<int64_t>(bytes));
    }
    Lent(const Lent &) = delete;
    Lent &operator=(const Lent &) = delete;
    static void drop(void *user) { delete static_cast<Lent *>(user); }
};

Tensor tensor_in(std::unique_ptr<Lent> lent, IntList shape, yoke_dtype dtype)
{
    Tensor made = from_memory(lent->memory, shape, nullptr, dtype, lent->device, Lent::drop,
                              lent.get(), "empty");
    (void)lent.release();
    return made;
}

}  // namespace

int64_t free_memory_of(Device &device)
{
    FreeMemory memory;
    const bool is_known = free_memory_on(device, &memory) == YOKE_OK;
    return static_cast<int64_t>(is_known ? std::min<uint64_t>(memory.free, INT64_MAX) : INT64_MAX);
}

// Raises YOKE_E_OOM if the ranks of a machine ask for more memory than is free there. The check comes before the
// allocation, because a machine without free shared memory ends programs at random.
void check_memory_of_hosts(const std::vector<int64_t> &given, const std::vector<RankInfo> &ranks,
                           uint64_t bytes)
{
    for (size_t i = 0; i < ranks.size(); ++i) {
        const auto here = std::ranges::count(ranks, ranks[i].node, &RankInfo::node);
        const double wanted = static_cast<double>(bytes) * static_cast<double>(here);
        if (wanted <= static_cast<double>(given[3 * i + 2])) continue;
        fail(
            YOKE_E_OOM,
            "empty: the %td ranks on the host of %s ask for %.0f bytes together, but %lld are free; give a smaller shape",
            here, describe(ranks[i]).c_str(), wanted, static_cast<long long>(given[3 * i + 2]));
    }
}

std::string unlike_memory(const std::vector<int64_t> &given, const std::vector<RankInfo> &ranks)
{
    for (size_t i = 0; i < ranks.size(); ++i) {
        const int64_t *ours = given.data(), *theirs = &given[3 * i];
        if (theirs[0] == ours[0] && theirs[1] == ours[1]) continue;
        return format(
            "empty: %s asks for %lld elements of %s, and %s for %lld of %s; all ranks must make the same calls in the same order",
            describe(ranks[0]).c_str(), static_cast<long long>(ours[0]),
            name(static_cast<yoke_dtype>(ours[1])), describe(ranks[i]).c_str(),
            static_cast<long long>(theirs[0]), name(static_cast<yoke_dtype>(theirs[1])));
    }
    return "";
}

void check_memory_of_devices(const std::vector<int64_t> &given, const std::vector<RankInfo> &ranks,
                             uint64_t bytes)
{
    for (size_t i = 0; i < ranks.size(); ++i)
        if (bytes > static_cast<uint64_t>(given[3 * i + 2]))
            fail(
                YOKE_E_OOM,
                "empty: the device of %s has %lld bytes free, but each rank asks for %llu; give a smaller shape",
                describe(ranks[i]).c_str(), static_cast<long long>(given[3 * i + 2]),
                static_cast<unsigned long long>(bytes));
}

Tensor lend(const std::shared_ptr<Engine> &engine, void *memory, IntList shape, yoke_dtype dtype,
            uint64_t bytes)
{
    Device &host = open_device(kHostKind);
    return tensor_in(std::make_unique<Lent>(host, engine, true, memory, bytes), shape, dtype);
}

Tensor lend(const std::shared_ptr<DeviceEngine> &engine, void *memory, IntList shape,
            yoke_dtype dtype, uint64_t bytes)
{
    return tensor_in(
        std::make_unique<Lent>(engine->device(), engine->engine(), false, memory, bytes), shape,
        dtype);
}

}  // namespace yoke
