// The collectives, sends and receives of the fake libnccl, and groups. See nccl_fake.h.
#include "tests/fakes/cuda/nccl_fake.h"

namespace yoke::fake {

ncclResult_t check_memory(const char *call, int device, const void *place, size_t bytes)
{
    if (!bytes) return ncclSuccess;
    size_t left = 0, behind = 0;
    const auto *const last = static_cast<const char *>(place) + bytes - 1;
    const int owner = place ? runtime().find(place, &left) : FAKE_UNKNOWN;
    if (owner == FAKE_UNKNOWN)
        return refuse(ncclInvalidArgument, "%s: %p is no memory of a device", call, place);
    if (owner >= 0 && owner != device)
        return refuse(ncclInvalidArgument,
                      "%s: %p is memory of device %d, the communicator is of device %d", call,
                      place, owner, device);
    if (left < bytes || runtime().find(last, &behind) != owner)
        return refuse(ncclInvalidUsage, "%s: %zu bytes at %p reach beyond their block", call, bytes,
                      place);
    return ncclSuccess;
}

namespace {

ncclResult_t check_stream(const char *call, const Member &member, cudaStream_t stream)
{
    const int is_captured = runtime().is_captured(member.device, stream);
    if (is_captured < 0)
        return refuse(ncclInvalidArgument,
                      "%s: %p is no stream of device %d, which the communicator is of", call,
                      static_cast<void *>(stream), member.device);
    return is_captured
               ? refuse(ncclInvalidUsage,
                        "%s: the stream is captured, which this fake does not support", call)
               : ncclSuccess;
}

ncclResult_t check(const char *call, const Op &op, const Member &member, cudaStream_t stream)
{
    const bool reduces = op.kind == kAllReduce || op.kind == kReduce || op.kind == kReduceScatter;
    if (op.dtype < 0 || op.dtype >= ncclNumTypes)
        return refuse(ncclInvalidArgument, "%s: %d is no data type", call, op.dtype);
    if (reduces && (op.reduction < 0 || op.reduction >= ncclNumOps))
        return refuse(ncclInvalidArgument, "%s: %d is no reduction", call, op.reduction);
    if (op.root < 0 || op.root >= member.size)
        return refuse(ncclInvalidArgument, "%s: rank %d of %d", call, op.root, member.size);
    if (const ncclResult_t wrong = check_memory(call, member.device, op.in, bytes_in(op, member)))
        return wrong;
    if (const ncclResult_t wrong = check_memory(call, member.device, op.out, bytes_out(op, member)))
        return wrong;
    return check_stream(call, member, stream);
}

// Submits a call. For a collective without elements NCCL launches no kernel.
ncclResult_t issue(const char *call, ncclComm *comm, Op op, cudaStream_t stream)
{
    if (comm->is_finalized)
        return spoil_group(refuse(ncclInvalidUsage, "%s: the communicator is finalized", call));
    if (const ncclResult_t wrong = check(call, op, *comm->member, stream))
        return spoil_group(wrong);
    const int rank = comm->member->rank, nth = ++comm->calls;
    const bool is_empty = !op.count && op.kind != kSend && op.kind != kRecv;
    const ncclResult_t result =
        is_empty ? ncclSuccess : submit(comm, op, stream, is_stuck(rank, nth));
    if (const ncclResult_t error = async_error(rank, nth))
        (comm->is_blocking || is_empty ? comm->error : comm->later_error) = error;
    return result;
}

}  // namespace
}  // namespace yoke::fake

using namespace yoke::fake;

ncclResult_t ncclGroupStart()
{
    if (const ncclResult_t asked = fault(__func__, nullptr)) return asked;
    return begin_group();
}

ncclResult_t ncclGroupEnd()
{
    spoil_group(fault(__func__, nullptr));
    return end_group();
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t dtype,
                           ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t stream)
{
    ENTER(comm);
    return issue(__func__, comm, {kAllReduce, dtype, reduction, 0, count, in, out}, stream);
}

ncclResult_t ncclReduce(const void *in, void *out, size_t count, ncclDataType_t dtype,
                        ncclRedOp_t reduction, int root, ncclComm_t comm, cudaStream_t stream)
{
    ENTER(comm);
    return issue(__func__, comm, {kReduce, dtype, reduction, root, count, in, out}, stream);
}

ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, ncclDataType_t dtype, int root,
                           ncclComm_t comm, cudaStream_t stream)
{
    ENTER(comm);
    return issue(__func__, comm, {kBroadcast, dtype, ncclSum, root, count, in, out}, stream);
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t dtype,
                           ncclComm_t comm, cudaStream_t stream)
{
    ENTER(comm);
    return issue(__func__, comm, {kAllGather, dtype, ncclSum, 0, count, in, out}, stream);
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t dtype,
                               ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t stream)
{
    ENTER(comm);
    return issue(__func__, comm, {kReduceScatter, dtype, reduction, 0, count, in, out}, stream);
}

ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t dtype, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    ENTER(comm);
    return issue(__func__, comm, {kSend, dtype, ncclSum, peer, count, in, nullptr}, stream);
}

ncclResult_t ncclRecv(void *out, size_t count, ncclDataType_t dtype, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    ENTER(comm);
    return issue(__func__, comm, {kRecv, dtype, ncclSum, peer, count, nullptr, out}, stream);
}

#ifndef YOKE_FAKE_NCCL_OLD

ncclResult_t ncclAlltoAll(const void *in, void *out, size_t count, ncclDataType_t dtype,
                          ncclComm_t comm, cudaStream_t stream)
{
    ENTER(comm);
    return issue(__func__, comm, {kAlltoAll, dtype, ncclSum, 0, count, in, out}, stream);
}

ncclResult_t ncclGather(const void *in, void *out, size_t count, ncclDataType_t dtype, int root,
                        ncclComm_t comm, cudaStream_t stream)
{
    ENTER(comm);
    return issue(__func__, comm, {kGather, dtype, ncclSum, root, count, in, out}, stream);
}

ncclResult_t ncclScatter(const void *in, void *out, size_t count, ncclDataType_t dtype, int root,
                         ncclComm_t comm, cudaStream_t stream)
{
    ENTER(comm);
    return issue(__func__, comm, {kScatter, dtype, ncclSum, root, count, in, out}, stream);
}

#endif
