#include "kernels/cpu/comm/regions.h"

#include <sys/mman.h>

#include "kernels/cpu/comm/comm.h"
#include "kernels/cpu/comm/swap.h"

namespace yoke::cpu::comm {

static yoke_status map_alone(uint64_t bytes, Mapping *out)
{
    void *data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return fail_system(YOKE_E_OOM, "cpu: cannot allocate %llu bytes of memory",
                           (unsigned long long)bytes);
    *out = Mapping(data, bytes);
    return YOKE_OK;
}

static yoke_status map_together(Comm &comm, Region &region)
{
    const Deadline deadline(comm.patience_s);
    Descriptor file;
    if (yoke_status status = make_shared(region.bytes, &file)) return status;
    Swap swap(comm, deadline, comm.patience_s, nullptr);
    for (int peer = 0; peer < comm.size; ++peer)
        if (peer != comm.rank && comm.shares_with(peer))
            swap.with(peer, comm.links[peer]->socket());
    if (yoke_status status = swap.run({region.number, region.bytes}, {file.get(), -1}))
        return status;
    region.theirs.resize(static_cast<size_t>(comm.size));
    for (int peer = 0; peer < comm.size; ++peer) {
        if (peer == comm.rank || !comm.shares_with(peer)) continue;
        if (yoke_status status = map_shared(swap.descriptors(peer)->get(), 0, region.bytes,
                                            &region.theirs[static_cast<size_t>(peer)]))
            return status;
    }
    if (yoke_status status = map_shared(file.get(), 0, region.bytes, &region.mine)) return status;
    region.inherited.keep(static_cast<Descriptor &&>(file), region.mine);
    return YOKE_OK;
}

yoke_status Regions::make(Comm &comm, uint64_t bytes, void **pointer)
{
    const uint64_t page = page_bytes();
    auto region = std::make_unique<Region>();
    region->number = next_;
    region->bytes = (bytes + page - 1) / page * page;
    const yoke_status status =
        comm.bell ? map_together(comm, *region) : map_alone(region->bytes, &region->mine);
    if (status) return status;
    ++next_;
    *pointer = region->mine.data();
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(region));
    return YOKE_OK;
}

yoke_status Regions::drop(void *pointer, uint64_t bytes)
{
    const std::lock_guard lock(mutex_);
    const size_t before = all_.size();
    std::erase_if(all_, [&](const auto &one) { return one->mine.data() == pointer; });
    if (all_.size() == before)
        return fail(YOKE_E_VALUE, "cpu: mem_free of %llu bytes that mem_alloc did not return",
                    (unsigned long long)bytes);
    return YOKE_OK;
}

const Region *Regions::find(const void *data, uint64_t bytes) const
{
    const char *begin = static_cast<const char *>(data);
    const std::lock_guard lock(mutex_);
    for (const auto &one : all_) {
        const char *start = one->mine.data();
        if (begin >= start && begin + bytes <= start + one->bytes) return one.get();
    }
    return nullptr;
}

}  // namespace yoke::cpu::comm
