#include "kernels/cuda/host/nccl/plan.h"

#include "kernels/common/collective.h"
#include "kernels/cuda/host/failures.h"
#include "kernels/cuda/host/nccl/failure.h"

namespace yoke::cuda::nccl {

namespace {

bool is_float(yoke_dtype dtype)
{
    return dtype == YOKE_F64 || dtype == YOKE_F32 || dtype == YOKE_F16 || dtype == YOKE_BF16 ||
           dtype == YOKE_F8_E4M3 || dtype == YOKE_F8_E5M2;
}

bool is_extreme(int32_t reduction)
{
    return reduction == YOKE_REDUCE_MIN || reduction == YOKE_REDUCE_MAX;
}

// Returns NCCL's type. bool and float8, which some versions of NCCL cannot name, pass as bytes.
ncclDataType_t own_dtype(yoke_dtype dtype)
{
    switch (dtype) {
        case YOKE_F64:
            return ncclFloat64;
        case YOKE_F32:
            return ncclFloat32;
        case YOKE_F16:
            return ncclFloat16;
        case YOKE_BF16:
            return ncclBfloat16;
        case YOKE_I64:
            return ncclInt64;
        case YOKE_I32:
            return ncclInt32;
        case YOKE_I8:
            return ncclInt8;
        default:
            return ncclUint8;
    }
}

ncclDataType_t key_dtype(int64_t bytes)
{
    return bytes == 8 ? ncclUint64 : bytes == 4 ? ncclUint32 : ncclUint8;
}

// Returns NCCL's reduction. The numbers differ: NCCL has max before min.
ncclRedOp_t reduction_of(int32_t reduction)
{
    switch (reduction) {
        case YOKE_REDUCE_PROD:
            return ncclProd;
        case YOKE_REDUCE_MIN:
            return ncclMin;
        case YOKE_REDUCE_MAX:
            return ncclMax;
        case YOKE_REDUCE_AVG:
            return ncclAvg;
        default:
            return ncclSum;
    }
}

}  // namespace

void Plan::choose_form()
{
    form_ = Form::kOwn;
    dtype_ = own_dtype(call_.dtype);
    if (!kernels::reduces(call_.op)) return;
    reduction_ = reduction_of(call_.reduction);
    if (is_extreme(call_.reduction)) {
        if (!is_float(call_.dtype)) return;
        form_ = Form::kKeys;
        dtype_ = key_dtype(bytes_in_form(form_, call_.dtype));
    } else if (call_.flags & YOKE_COMM_IN_F32 &&
               (call_.dtype == YOKE_F16 || call_.dtype == YOKE_BF16)) {
        form_ = Form::kWide;
        dtype_ = ncclFloat32;
    }
}

// Returns how many parts of `count` elements the input has (of_in), or the output.
int64_t Plan::parts(bool of_in) const
{
    const int size = comm_->size;
    switch (call_.op) {
        case YOKE_COMM_ALL_GATHER:
        case YOKE_COMM_GATHER:
            return of_in ? 1 : size;
        case YOKE_COMM_SCATTER:
        case YOKE_COMM_REDUCE_SCATTER:
            return of_in ? size : 1;
        case YOKE_COMM_ALL_TO_ALL:
            return size;
        default:
            return 1;
    }
}

bool Plan::has_result() const
{
    return call_.op != YOKE_COMM_REDUCE || call_.peer == comm_->rank;
}

char *Plan::part_of(const void *base, int rank) const
{
    if (!base) return nullptr;
    const auto bytes = static_cast<size_t>(bytes_in_form(form_, call_.dtype)) * count_;
    return static_cast<char *>(const_cast<void *>(base)) + static_cast<size_t>(rank) * bytes;
}

// Returns whether the input must be copied. If input and output begin at the same address, NCCL treats them as in
// place only if this rank's part begins there too.
bool Plan::must_copy() const
{
    const int rank = comm_->rank;
    const void *in = call_.in, *out = call_.out;
    if (!in || !out || comm_->size == 1) return false;
    switch (call_.op) {
        case YOKE_COMM_ALL_TO_ALL:
            return in == out;
        case YOKE_COMM_ALL_GATHER:
        case YOKE_COMM_GATHER:
        case YOKE_COMM_SCATTER:
        case YOKE_COMM_REDUCE_SCATTER:
            return in == out && rank > 0;
        default:
            return false;
    }
}

yoke_status Plan::copy_in(uint64_t bytes)
{
    if (const yoke_status status = scratch_.reserve(bytes)) return status;
    const auto stream = static_cast<cudaStream_t>(launch_.stream);
    if (const cudaError_t error =
            cudaMemcpyAsync(scratch_.data(), call_.in, bytes, cudaMemcpyDeviceToDevice, stream)) {
        cudaGetLastError();
        return fail_at(place_of(*comm_, kernels::call_name(call_.op)), status_of(error),
                       "cudaMemcpyAsync of %llu bytes failed with %s (%d)",
                       static_cast<unsigned long long>(bytes), cudaGetErrorName(error),
                       static_cast<int>(error));
    }
    in_ = scratch_.data();
    return YOKE_OK;
}

yoke_status Plan::prepare(Comm &comm, const yoke_collective &call)
{
    comm_ = &comm;
    call_ = call;
    launch_.struct_size = sizeof launch_;
    launch_.op = -1;
    launch_.device = comm.device;
    launch_.stream = call.stream;
    in_ = call.in;
    out_ = call.out;
    count_ = static_cast<size_t>(call.count);
    choose_form();
    if (is_empty()) return YOKE_OK;
    const int64_t given = call.count * parts(true);
    const auto bytes = static_cast<uint64_t>(given * bytes_in_form(form_, call.dtype));
    if (form_ == Form::kOwn) return must_copy() ? copy_in(bytes) : YOKE_OK;
    if (const yoke_status status = scratch_.reserve(bytes)) return status;
    in_ = out_ = scratch_.data();
    if (call.op == YOKE_COMM_REDUCE_SCATTER) out_ = part_of(in_, comm.rank);  // NCCL's in place
    return to_form(&launch_, form_, call.dtype, call.reduction == YOKE_REDUCE_MIN, call.in,
                   scratch_.data(), given);
}

yoke_status Plan::finish()
{
    if (form_ == Form::kOwn || is_empty() || !has_result()) return YOKE_OK;
    return from_form(&launch_, form_, call_.dtype, call_.reduction == YOKE_REDUCE_MIN, out_,
                     call_.out, call_.count);
}

void Plan::keep_memory()
{
    scratch_.keep();
    if (call_.fault) call_.fault->keeps_memory = 1;
}

// ---- NCCL -----------------------------------------------------------------------------------------------------------

bool Plan::needs_group(const Calls &nccl) const
{
    switch (call_.op) {
        case YOKE_COMM_GATHER:
            return !nccl.ncclGather;
        case YOKE_COMM_SCATTER:
            return !nccl.ncclScatter;
        case YOKE_COMM_ALL_TO_ALL:
            return !nccl.ncclAlltoAll;
        default:
            return false;
    }
}

// Issues sends and receives in place of calls that came with 2.28: each rank exchanges parts with each rank, also
// with itself.
ncclResult_t Plan::issue_parts(const Calls &nccl) const
{
    const auto stream = static_cast<cudaStream_t>(call_.stream);
    const int root = call_.peer;
    const bool is_root = root == comm_->rank, sends_all = call_.op != YOKE_COMM_GATHER,
               takes_all = call_.op != YOKE_COMM_SCATTER, is_all = call_.op == YOKE_COMM_ALL_TO_ALL;
    ncclResult_t result = ncclSuccess;
    for (int peer = 0; peer < comm_->size && result == ncclSuccess; ++peer) {
        const bool sends = is_all || (sends_all ? is_root : peer == root),
                   takes = is_all || (takes_all ? is_root : peer == root);
        const void *from = sends_all ? part_of(in_, peer) : in_;
        void *to = takes_all ? part_of(out_, peer) : out_;
        if (sends && takes && from == to) continue;  // this rank's own part, in place
        if (sends) result = nccl.ncclSend(from, count_, dtype_, peer, comm_->handle, stream);
        if (takes && result == ncclSuccess)
            result = nccl.ncclRecv(to, count_, dtype_, peer, comm_->handle, stream);
    }
    return result;
}

ncclResult_t Plan::issue(const Calls &nccl) const
{
    if (is_empty()) return ncclSuccess;
    if (needs_group(nccl)) return issue_parts(nccl);
    const ncclComm_t comm = comm_->handle;
    const auto stream = static_cast<cudaStream_t>(call_.stream);
    const int peer = call_.peer;
    switch (call_.op) {
        case YOKE_COMM_ALL_REDUCE:
            return nccl.ncclAllReduce(in_, out_, count_, dtype_, reduction_, comm, stream);
        case YOKE_COMM_REDUCE:
            return nccl.ncclReduce(in_, out_, count_, dtype_, reduction_, peer, comm, stream);
        case YOKE_COMM_BROADCAST:
            return nccl.ncclBroadcast(peer == comm_->rank ? in_ : out_, out_, count_, dtype_, peer,
                                      comm, stream);
        case YOKE_COMM_ALL_GATHER:
            return nccl.ncclAllGather(in_, out_, count_, dtype_, comm, stream);
        case YOKE_COMM_REDUCE_SCATTER:
            return nccl.ncclReduceScatter(in_, out_, count_, dtype_, reduction_, comm, stream);
        case YOKE_COMM_GATHER:
            return nccl.ncclGather(in_, out_, count_, dtype_, peer, comm, stream);
        case YOKE_COMM_SCATTER:
            return nccl.ncclScatter(in_, out_, count_, dtype_, peer, comm, stream);
        case YOKE_COMM_ALL_TO_ALL:
            return nccl.ncclAlltoAll(in_, out_, count_, dtype_, comm, stream);
        case YOKE_COMM_SEND:
            return nccl.ncclSend(in_, count_, dtype_, peer, comm, stream);
        case YOKE_COMM_RECV:
            return nccl.ncclRecv(out_, count_, dtype_, peer, comm, stream);
        default:
            return ncclInvalidArgument;
    }
}

const char *Plan::function() const
{
    static const char *const kFunctions[YOKE_COMM_OP_COUNT] = {
        "no call of NCCL", "ncclAllReduce", "ncclReduce",  "ncclBroadcast",
        "ncclAllGather",   "ncclGather",    "ncclScatter", "ncclReduceScatter",
        "ncclAlltoAll",    "ncclSend",      "ncclRecv"};
    return kFunctions[call_.op];
}

}  // namespace yoke::cuda::nccl
