// collective.h: one call of a collective: its tensors, checked against each other, and what all ranks must say alike.
#pragma once

#include "core/backend/comm.h"
#include "core/comm/staging.h"

#include <optional>
#include <string>

namespace yoke {

// In signatures alone: the all_gathers by which ranks agree on a split, on memory that peers reach, and on a device
// that init was given.
inline constexpr int32_t kSplitCall = YOKE_COMM_OP_COUNT, kEmptyCall = kSplitCall + 1,
                         kOpenCall = kEmptyCall + 1, kCallCount = kOpenCall + 1;

// The name by which scripts call it, "all_reduce".
const char *collective_name(int32_t op) noexcept;
// "sum"; "" for -1.
const char *reduction_name(int32_t reduction) noexcept;
// Raises YOKE_E_VALUE with those that there are.
int32_t read_reduction(const char *name, const char *call);

// Tensors are what the caller gave; what a rank does not give or take is absent.
struct Collective {
    int32_t op = YOKE_COMM_BARRIER;
    int32_t reduction = -1;
    int32_t peer = -1;  // the root, or the other rank of send and recv
    Tensor in = {}, out = {};
    yoke_dtype dtype = YOKE_NONE;
    int64_t count = 0;   // as yoke_collective has it
    uint32_t flags = 0;  // YOKE_COMM_IN_F32
    // Tensors of another device than the group's go by the host; else the call is refused.
    bool may_be_staged = false;
    // Signature of a call that the core makes for itself; group and sequence are not read.
    std::optional<yoke_comm_signature> said_as = {};
    Ref<Staged> staged = {};  // of tensors of a device that the host's engine serves

    int32_t called_as() const noexcept { return said_as ? said_as->op : op; }
    const char *name() const noexcept { return collective_name(called_as()); }
    bool is_message() const noexcept { return op == YOKE_COMM_SEND || op == YOKE_COMM_RECV; }
    Device *device() const noexcept;  // null: of a barrier
    uint64_t bytes() const noexcept;  // of all that this rank gives and takes
};

// Replaces the caller's tensors by views: a leaf may move (move_leaf) while the call is under way.
inline void hold_memory(Collective &call)
{
    const bool is_one = call.in.get() == call.out.get();
    if (call.in.present()) call.in = alias(*call.in);
    if (call.out.present()) call.out = is_one ? call.in : alias(*call.out);
}

// Returns how often what a tensor lies in has been written; 0 for an absent one.
inline uint32_t version_of(const Tensor &tensor) noexcept
{
    return tensor.present() ? tensor->storage->version.load(std::memory_order_relaxed) : 0;
}

// Returns the flags of a call whose sums are to be formed in that dtype. Raises YOKE_E_TYPE for any but float32 and
// none.
uint32_t flags_of_reduce_dtype(yoke_dtype reduce_dtype, const char *call);

// Where a rank stands in its group.
struct RankOf {
    int32_t rank, size;
};

// Fills in dtype and count. Raises YOKE_E_VALUE and YOKE_E_TYPE, naming argument, both values and the rank, for a root
// or peer that is none, tensors that are missing, of different dtypes or devices, or whose sizes do not divide or
// agree, and for reductions that a dtype does not have.
void check_collective(Collective &call, RankOf at);
// Whether row-major `in` and `out` of it lie over each other in a way that engines do not take: neither in one place
// nor the one as this rank's own part of the other.
bool overlaps_in_part(const yoke_tensor &in, const yoke_tensor &out, int32_t op, int32_t rank);
// Of a call that was checked: which of its tensors this rank's part of it reads and writes.
Staged::Uses uses_of(const Collective &call, RankOf at);
// Returns what an engine is told of a call that was checked: with these tensors, which are row-major, and without its
// signature and its time.
yoke_collective record_of(const Collective &call, const Tensor &in, const Tensor &out,
                          int32_t rank);
// Returns what all ranks must say alike of a call that was checked, but for the group and the sequence.
yoke_comm_signature signature_of(const Collective &call);
// Does the same for a call of the core's own, by which ranks exchange `count` numbers.
yoke_comm_signature signature_of(int32_t called_as, int64_t count);

// "all_reduce of 5 float32, sum"; "broadcast of 5 int64, root 0". The signature of a recv is that of the send: who made
// that call gives the rank `from` which it receives, for "recv of 5 int64 from rank 0".
std::string describe(const yoke_comm_signature &signature, int32_t from = -1);
// What in two of them differs, "the dtype, float32 and int64"; of the first thing that does.
std::string difference(const yoke_comm_signature &ours, const yoke_comm_signature &theirs);

}  // namespace yoke
