// collective.h: a call of a collective: its tensors, checked against each other, and its signature, alike on all
// ranks.
#pragma once

#include "core/backend/comm.h"
#include "core/comm/staging.h"

#include <optional>
#include <string>

namespace yoke {

// Numbers used only in signatures: the all_gathers by which ranks agree on a split, on memory for peers, and on a
// device given to init.
inline constexpr int32_t kSplitCall = YOKE_COMM_OP_COUNT, kEmptyCall = kSplitCall + 1,
                         kOpenCall = kEmptyCall + 1, kCallCount = kOpenCall + 1;

// Returns the name of a call in scripts, such as "all_reduce"; "no collective" for an unknown number.
const char *collective_name(int32_t op) noexcept;
// Returns the name of a reduction, such as "sum"; "" for -1 and unknown numbers.
const char *reduction_name(int32_t reduction) noexcept;
// Returns the number of the reduction with this name. Raises YOKE_E_VALUE with the known names for other names.
int32_t read_reduction(const char *name, const char *call);

// A call with the caller's tensors; tensors without a use on this rank are absent.
struct Collective {
    int32_t op = YOKE_COMM_BARRIER;
    int32_t reduction = -1;
    int32_t peer = -1;  // the root, or the other rank of send and recv
    Tensor in = {}, out = {};
    yoke_dtype dtype = YOKE_NONE;
    int64_t count = 0;   // as in yoke_collective
    uint32_t flags = 0;  // YOKE_COMM_IN_F32
    // Tensors outside the group's device are staged; else the call is refused.
    bool may_be_staged = false;
    // Signature of an internal call of the core; group and sequence are not read.
    std::optional<yoke_comm_signature> said_as = {};
    Ref<Staged> staged = {};  // for tensors of a device that the host engine serves

    int32_t called_as() const noexcept { return said_as ? said_as->op : op; }
    const char *name() const noexcept { return collective_name(called_as()); }
    bool is_message() const noexcept { return op == YOKE_COMM_SEND || op == YOKE_COMM_RECV; }
    Device *device() const noexcept;  // null for a barrier
    uint64_t bytes() const noexcept;  // all bytes read or written by this rank
};

// Replaces the caller's tensors by views of the same memory: a leaf may move (move_leaf) while the call is under way.
inline void hold_memory(Collective &call)
{
    const bool is_one = call.in.get() == call.out.get();
    if (call.in.present()) call.in = alias(*call.in);
    if (call.out.present()) call.out = is_one ? call.in : alias(*call.out);
}

// Returns how often a tensor's storage was written; 0 for an absent tensor.
inline uint32_t version_of(const Tensor &tensor) noexcept
{
    return tensor.present() ? tensor->storage->version.load(std::memory_order_relaxed) : 0;
}

// Returns YOKE_COMM_IN_F32 for float32, and 0 for YOKE_NONE. Raises YOKE_E_TYPE for other dtypes.
uint32_t flags_of_reduce_dtype(yoke_dtype reduce_dtype, const char *call);

// Place of a rank in its group.
struct RankOf {
    int32_t rank, size;
};

// Checks a call and sets its dtype and count. Raises YOKE_E_VALUE and YOKE_E_TYPE with argument, both values and the
// rank: for an invalid root or peer; for missing or expanded tensors; for unlike dtypes or devices; for sizes that do
// not divide or agree; for reductions that a dtype does not support.
void check_collective(Collective &call, RankOf at);
// Returns whether row-major `in` and `out` overlap in a way that engines refuse. Engines accept equal places, or a
// tensor as this rank's own part of the other.
bool overlaps_in_part(const yoke_tensor &in, const yoke_tensor &out, int32_t op, int32_t rank);
// Returns which tensors of a checked call this rank's part reads and writes.
Staged::Uses uses_of(const Collective &call, RankOf at);
// Returns the engine's record of a checked call, with these row-major tensors, and without signature and time.
yoke_collective record_of(const Collective &call, const Tensor &in, const Tensor &out,
                          int32_t rank);
// Returns the signature of a checked call, which must be alike on all ranks; group and sequence are missing.
yoke_comm_signature signature_of(const Collective &call);
// Returns the signature of an internal call, by which ranks exchange `count` int64 numbers; group and sequence are
// missing.
yoke_comm_signature signature_of(int32_t called_as, int64_t count);

// Returns a call for people: "all_reduce of 5 float32, sum" or "broadcast of 5 int64, root 0". A recv has the
// signature of the send, so the receiver passes the sender as `from`, for "recv of 5 int64 from rank 0".
std::string describe(const yoke_comm_signature &signature, int32_t from = -1);
// Returns the first difference of two signatures: "the dtype" or "the number of elements"; "nothing" if they are
// equal.
std::string difference(const yoke_comm_signature &ours, const yoke_comm_signature &theirs);

}  // namespace yoke
