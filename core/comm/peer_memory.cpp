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

// Memory of an engine, until its tensor goes. It is not the group's: the group's thread may be the last to let go of a
// tensor.
struct Lent {
    std::shared_ptr<Engine> engine;
    void *memory;
    uint64_t bytes;
    Lent(std::shared_ptr<Engine> of, void *made, uint64_t size)
        : engine(std::move(of)), memory(made), bytes(size)
    {
        count_foreign(open_device(kHostKind), static_cast<int64_t>(bytes));
    }
    ~Lent()
    {
        if (memory) engine->free(memory, bytes);
        count_foreign(open_device(kHostKind), -static_cast<int64_t>(bytes));
    }
    Lent(const Lent &) = delete;
    Lent &operator=(const Lent &) = delete;
    static void drop(void *user) { delete static_cast<Lent *>(user); }
};

}  // namespace

int64_t free_memory_of_host()
{
    FreeMemory memory;
    const bool is_known = free_memory_on(open_device(kHostKind), &memory) == YOKE_OK;
    return static_cast<int64_t>(is_known ? std::min<uint64_t>(memory.free, INT64_MAX) : INT64_MAX);
}

// A host that runs out of shared memory ends programs at random.
void check_memory_of_hosts(const std::vector<int64_t> &given, const std::vector<RankInfo> &ranks,
                           uint64_t bytes)
{
    for (size_t i = 0; i < ranks.size(); ++i) {
        const auto here = std::ranges::count(ranks, ranks[i].node, &RankInfo::node);
        const double wanted = static_cast<double>(bytes) * static_cast<double>(here);
        if (wanted <= static_cast<double>(given[3 * i + 2])) continue;
        fail(
            YOKE_E_OOM,
            "empty: the %td ranks on the host of %s ask for %.0f bytes together, of which %lld are free",
            here, describe(ranks[i]).c_str(), wanted, static_cast<long long>(given[3 * i + 2]));
    }
}

std::string unlike_memory(const std::vector<int64_t> &given, const std::vector<RankInfo> &ranks)
{
    for (size_t i = 0; i < ranks.size(); ++i) {
        const int64_t *ours = given.data(), *theirs = &given[3 * i];
        if (theirs[0] == ours[0] && theirs[1] == ours[1]) continue;
        return format(
            "empty: %s asks for %lld elements of %s, and %s for %lld of %s; all ranks make the same calls in the same order",
            describe(ranks[0]).c_str(), static_cast<long long>(ours[0]),
            name(static_cast<yoke_dtype>(ours[1])), describe(ranks[i]).c_str(),
            static_cast<long long>(theirs[0]), name(static_cast<yoke_dtype>(theirs[1])));
    }
    return "";
}

Tensor lend(const std::shared_ptr<Engine> &engine, void *memory, IntList shape, yoke_dtype dtype,
            uint64_t bytes)
{
    auto lent = std::make_unique<Lent>(engine, memory, bytes);
    Tensor made = from_memory(lent->memory, shape, nullptr, dtype, open_device(kHostKind),
                              Lent::drop, lent.get(), "empty");
    (void)lent.release();
    return made;
}

}  // namespace yoke
