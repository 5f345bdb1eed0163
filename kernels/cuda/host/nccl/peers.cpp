#include "kernels/cuda/host/nccl/peers.h"

#include <cstring>
#include <memory>
#include <new>

#include "kernels/cuda/host/entries.h"
#include "kernels/cuda/host/nccl/library.h"

namespace yoke::cuda::nccl {

namespace {

// Facts published by a rank.
struct Told {
    int32_t version = 0;  // NCCL's version; 0 if the rank has no NCCL
    int32_t status = 0;   // why the rank cannot go on
    char uuid[64] = "";   // UUID of the card
};

yoke_status describe_self(const Device *device, yoke_status own, Told &told)
{
    told.version = find_version();
    told.status = own;
    if (own) return own;
    yoke_backend_device_info info{};
    info.struct_size = sizeof info;
    const yoke_status status = device_info(const_cast<Device *>(device), &info);
    told.status = status;
    memcpy(told.uuid, info.uuid, sizeof told.uuid);
    return status;
}

yoke_status find_failed(const yoke_comm_member &member, const Told *all)
{
    for (int rank = 0; rank < member.size; ++rank)
        if (all[rank].status)
            return fail(
                YOKE_E_COMM, 0,
                "init: rank %d cannot create its part of the NCCL communicator; see the error of that rank",
                rank);
    return YOKE_OK;
}

yoke_status compare_versions(const yoke_comm_member &member, const Told *all)
{
    for (int rank = 1; rank < member.size; ++rank) {
        const int first = all[0].version, other = all[rank].version;
        if (first == other) continue;
        return fail(
            YOKE_E_COMM, 0,
            "init: rank 0 has NCCL %d.%d.%d and rank %d has NCCL %d.%d.%d, which cannot work together; install the same version on all machines",
            first / 10000, first % 10000 / 100, first % 100, rank, other / 10000,
            other % 10000 / 100, other % 100);
    }
    return YOKE_OK;
}

// Compares cards by UUID. Fails if two ranks have the same card; cards without a UUID pass.
yoke_status compare_cards(const yoke_comm_member &member, const Told *all)
{
    for (int rank = 1; rank < member.size; ++rank)
        for (int other = 0; other < rank; ++other)
            if (*all[rank].uuid && !strcmp(all[rank].uuid, all[other].uuid))
                return fail(
                    YOKE_E_VALUE, 0,
                    "init: ranks %d and %d both use the card %s, but NCCL needs a separate card for each rank; call set_device(local_rank) first, or call init with backend 'cpu', whose ranks may share a card",
                    other, rank, all[rank].uuid);
    return YOKE_OK;
}

}  // namespace

yoke_status agree(const yoke_comm_member &member, const Device *device, yoke_status own)
{
    if (!member.all_gather) return own;
    Told mine;
    own = describe_self(device, own, mine);
    const std::unique_ptr<Told[]> all(new (std::nothrow) Told[static_cast<size_t>(member.size)]);
    if (!all) return fail(YOKE_E_OOM, 0, "init: no host memory for %d ranks", member.size);
    const yoke_status status = member.all_gather(member.user, &mine, sizeof mine, all.get());
    if (own || status) return own ? own : status;
    if (const yoke_status failed = find_failed(member, all.get())) return failed;
    if (const yoke_status unlike = compare_versions(member, all.get())) return unlike;
    return compare_cards(member, all.get());
}

}  // namespace yoke::cuda::nccl
