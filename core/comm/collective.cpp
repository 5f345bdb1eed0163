#include "core/comm/collective.h"

#include "core/base/error.h"
#include "core/base/shape.h"

#include <algorithm>
#include <cstring>

namespace yoke {

// ---- Names ------------------------------------------------------------------------------------------------------

namespace {

// Use of tensors by a collective, by its number.
struct Kind {
    const char *name;
    const char *in, *out;  // names of arguments; nullptr: no argument, or the same as the other
    bool reduces, has_root, has_peer;
    bool in_has_parts, out_has_parts;  // a part for each rank
    bool in_at_root, out_at_root;      // only at the root
};
constexpr Kind kKinds[YOKE_COMM_OP_COUNT] = {
    {"barrier", nullptr, nullptr, false, false, false, false, false, false, false},
    {"all_reduce", "t", nullptr, true, false, false, false, false, false, false},
    {"reduce", "t", nullptr, true, true, false, false, false, false, false},
    {"broadcast", "t", nullptr, false, true, false, false, false, false, false},
    {"all_gather", "t", "out", false, false, false, false, true, false, false},
    {"gather", "t", "out", false, true, false, false, true, false, true},
    {"scatter", "t", "out", false, true, false, true, false, true, false},
    {"reduce_scatter", "t", "out", true, false, false, true, false, false, false},
    {"all_to_all", "t", "out", false, false, false, true, true, false, false},
    {"send", "t", nullptr, false, false, true, false, false, false, false},
    {"recv", nullptr, "t", false, false, true, false, false, false, false},
};
constexpr const char *kReductions[] = {"sum", "prod", "min", "max", "avg"};

const Kind &kind_of(int32_t op)
{
    return kKinds[op];
}

}  // namespace

const char *collective_name(int32_t op) noexcept
{
    if (op >= 0 && op < YOKE_COMM_OP_COUNT) return kKinds[op].name;
    return op == kSplitCall   ? "split"
           : op == kEmptyCall ? "empty"
           : op == kOpenCall  ? "init"
                              : "an unknown call";
}

const char *reduction_name(int32_t reduction) noexcept
{
    return reduction >= 0 && reduction < std::ssize(kReductions) ? kReductions[reduction] : "";
}

int32_t read_reduction(const char *name, const char *call)
{
    const auto *found = std::ranges::find_if(
        kReductions, [&](const char *known) { return strcmp(known, name) == 0; });
    if (found == std::end(kReductions))
        fail_in(call, YOKE_E_VALUE, "argument 'op' is '%s'; it must be sum, avg, prod, min or max",
                name);
    return static_cast<int32_t>(found - kReductions);
}

uint32_t flags_of_reduce_dtype(yoke_dtype reduce_dtype, const char *call)
{
    if (reduce_dtype == YOKE_NONE) return 0;
    if (reduce_dtype != YOKE_F32)
        fail_in(call, YOKE_E_TYPE, "argument 'reduce_dtype' is %s; it must be float32, or none",
                is_dtype(reduce_dtype) ? name(reduce_dtype) : "not a dtype");
    return YOKE_COMM_IN_F32;
}

// ---- Checks -----------------------------------------------------------------------------------------------------

Device *Collective::device() const noexcept
{
    return in.present() ? in->device : out.present() ? out->device : nullptr;
}

uint64_t Collective::bytes() const noexcept
{
    const bool is_one = in.get() == out.get();
    return (in.present() ? in->nbytes() : 0) + (out.present() && !is_one ? out->nbytes() : 0);
}

namespace {

void check_rank(int32_t rank, const char *argument, const Collective &call, RankOf at)
{
    if (rank < 0 || rank >= at.size)
        fail(YOKE_E_VALUE, "%s: argument '%s' is %d; the group has the ranks 0 to %d", call.name(),
             argument, rank, at.size - 1);
}

void check_peer(const Collective &call, RankOf at)
{
    const Kind &kind = kind_of(call.op);
    if (kind.has_root) check_rank(call.peer, "root", call, at);
    if (!kind.has_peer) return;
    const char *argument = call.op == YOKE_COMM_SEND ? "dst" : "src";
    check_rank(call.peer, argument, call, at);
    if (call.peer == at.rank)
        fail(YOKE_E_VALUE, "%s: argument '%s' is %d, this rank itself; name another rank",
             call.name(), argument, call.peer);
}

void check_given(const Tensor &tensor, const char *argument, bool is_wanted, const Collective &call,
                 RankOf at)
{
    if (is_wanted && !tensor.present())
        fail(YOKE_E_VALUE, "%s: argument '%s' is missing; rank %d must give a tensor", call.name(),
             argument, at.rank);
}

void check_tensors(const Collective &call, RankOf at)
{
    const Kind &kind = kind_of(call.op);
    const bool is_root = call.peer == at.rank;
    if (kind.in) check_given(call.in, kind.in, !kind.in_at_root || is_root, call, at);
    if (kind.out) check_given(call.out, kind.out, !kind.out_at_root || is_root, call, at);
    if (!call.in.present() || !call.out.present()) return;
    if (call.in->dtype != call.out->dtype)
        fail(YOKE_E_TYPE, "%s: argument 't' is %s, but 'out' is %s; they must have the same dtype",
             call.name(), name(call.in->dtype), name(call.out->dtype));
    if (call.in->device != call.out->device)
        fail(YOKE_E_VALUE,
             "%s: argument 't' is on %s, but 'out' is on %s; they must be on the same device",
             call.name(), call.in->device->name.c_str(), call.out->device->name.c_str());
}

// Returns the number of elements in a rank's part of the tensor; without `has_parts`, of the whole tensor. Raises
// YOKE_E_VALUE if the elements do not divide by the number of ranks.
int64_t part_of(const Tensor &tensor, const char *argument, bool has_parts, const Collective &call,
                RankOf at)
{
    if (!has_parts) return tensor->numel;
    if (tensor->numel % at.size != 0)
        fail(
            YOKE_E_VALUE,
            "%s: argument '%s' of shape %s has %lld elements, which cannot be divided among the %d ranks of the group; pad the tensor",
            call.name(), argument, to_string(tensor->shape()).c_str(),
            static_cast<long long>(tensor->numel), at.size);
    return tensor->numel / at.size;
}

void check_sizes(Collective &call, RankOf at)
{
    const Kind &kind = kind_of(call.op);
    const auto part = [&](const Tensor &tensor, const char *argument, bool has_parts) {
        return part_of(tensor, argument, has_parts, call, at);
    };
    const bool has_in = call.in.present() && kind.in, has_out = call.out.present() && kind.out;
    if (has_in) call.count = part(call.in, "t", kind.in_has_parts);
    if (!has_out) return;
    const int64_t count = part(call.out, kind.out, kind.out_has_parts);
    if (has_in && count != call.count)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'out' of shape %s has %lld elements for each part; it must have %lld, like argument 't' of shape %s in a group of %d rank%s",
            call.name(), to_string(call.out->shape()).c_str(), static_cast<long long>(count),
            static_cast<long long>(call.count), to_string(call.in->shape()).c_str(), at.size,
            at.size == 1 ? "" : "s");
    call.count = count;
}

void check_reduction(const Collective &call)
{
    const yoke_dtype dtype = call.dtype;
    const char *reduction = reduction_name(call.reduction);
    if (!kind_of(call.op).reduces) return;
    if (!*reduction)
        fail(YOKE_E_VALUE, "%s: argument 'op' is %d; it must be one of YOKE_REDUCE_*", call.name(),
             call.reduction);
    const bool is_extreme = call.reduction == YOKE_REDUCE_MIN || call.reduction == YOKE_REDUCE_MAX;
    const bool is_small_float = is_floating(dtype) && item_size(dtype) == 1;
    if ((dtype == YOKE_BOOL || is_small_float) && !is_extreme)
        fail(
            YOKE_E_TYPE,
            "%s: argument 'op' is '%s', which does not support %s; use min or max, or cast 't' first",
            call.name(), reduction, name(dtype));
    if ((call.flags & YOKE_COMM_IN_F32) &&
        (!is_floating(dtype) || is_small_float || dtype == YOKE_F64))
        fail(
            YOKE_E_TYPE,
            "%s: argument 'reduce_dtype' is float32 and 't' is %s; 't' must be float16, bfloat16 or float32",
            call.name(), name(dtype));
    if (call.reduction == YOKE_REDUCE_AVG && !is_floating(dtype))
        fail(
            YOKE_E_TYPE,
            "%s: argument 'op' is 'avg', which is not exact for %s; use sum and divide, or cast 't' first",
            call.name(), name(dtype));
}

void check_written(const Collective &call)
{
    const Tensor &written = call.out.present() ? call.out : call.in;
    if (call.op == YOKE_COMM_SEND || !written.present()) return;
    const char *argument = call.out.present() ? kind_of(call.op).out : kind_of(call.op).in;
    if (const int axis = expanded_axis(*written); axis >= 0)
        fail(
            YOKE_E_VALUE,
            "%s: argument '%s' is expanded: the %lld elements of axis %d share one place of memory; give a clone() of the tensor",
            call.name(), argument, static_cast<long long>(written->shape_[axis]), axis);
}

}  // namespace

Staged::Uses uses_of(const Collective &call, RankOf at)
{
    const Kind &kind = kind_of(call.op);
    const bool is_root = call.peer == at.rank;
    const bool is_broadcast = call.op == YOKE_COMM_BROADCAST,
               is_reduce = call.op == YOKE_COMM_REDUCE;
    return {is_root || !(kind.in_at_root || is_broadcast),
            is_broadcast
                ? !is_root
                : (is_root || !(kind.out_at_root || is_reduce)) && call.op != YOKE_COMM_SEND};
}

bool overlaps_in_part(const yoke_tensor &in, const yoke_tensor &out, int32_t op, int32_t rank)
{
    if (!shares_memory(in, out)) return false;
    if (in.data == out.data && in.numel == out.numel) return false;
    const auto place = static_cast<uint64_t>(rank);
    if (op == YOKE_COMM_ALL_GATHER) return in.data != out.data + place * in.nbytes();
    return op != YOKE_COMM_REDUCE_SCATTER || out.data != in.data + place * out.nbytes();
}

void check_collective(Collective &call, RankOf at)
{
    check_peer(call, at);
    check_tensors(call, at);
    const Tensor &any = call.in.present() ? call.in : call.out;
    call.dtype = any.present() ? any->dtype : YOKE_NONE;
    check_sizes(call, at);
    check_reduction(call);
    check_written(call);
}

yoke_collective record_of(const Collective &call, const Tensor &in, const Tensor &out, int32_t rank)
{
    const bool is_root = call.peer == rank;
    yoke_collective record{};
    record.struct_size = sizeof record;
    record.op = call.op;
    record.dtype = call.dtype;
    record.reduction = call.reduction;
    record.peer = call.peer;
    record.flags = call.flags;
    record.count = call.count;
    record.in = in.present() ? in->data : nullptr;
    record.out = out.present() ? out->data : nullptr;
    if (call.op == YOKE_COMM_BROADCAST && !is_root) record.in = nullptr;
    if (call.op == YOKE_COMM_REDUCE && !is_root) record.out = nullptr;
    return record;
}

// ---- Signatures -------------------------------------------------------------------------------------------------

yoke_comm_signature signature_of(const Collective &call)
{
    if (call.said_as) return *call.said_as;
    yoke_comm_signature signature{};
    signature.count = call.count;
    signature.op = call.op;
    signature.dtype = call.dtype;
    signature.reduction = call.reduction;
    signature.root = call.peer;
    signature.flags = call.flags;
    return signature;
}

yoke_comm_signature signature_of(int32_t called_as, int64_t count)
{
    yoke_comm_signature signature{};
    signature.count = count;
    signature.op = called_as;
    signature.dtype = YOKE_I64;
    signature.reduction = signature.root = -1;
    return signature;
}

std::string describe(const yoke_comm_signature &signature, int32_t from)
{
    std::string text = collective_name(from < 0 ? signature.op : YOKE_COMM_RECV);
    if (signature.op != YOKE_COMM_BARRIER && signature.op < YOKE_COMM_OP_COUNT)
        text += format(
            " of %lld %s", static_cast<long long>(signature.count),
            is_dtype(signature.dtype) ? name(signature.dtype) : "elements of an unknown dtype");
    if (signature.on_device) text += " on a device";
    if (signature.reduction >= 0) text += std::string(", ") + reduction_name(signature.reduction);
    if (signature.flags & YOKE_COMM_IN_F32) text += " in float32";
    if (from >= 0) return text + " from rank " + std::to_string(from);
    if (signature.root >= 0)
        text +=
            format(signature.op == YOKE_COMM_SEND ? " to rank %d" : ", root %d", signature.root);
    return text;
}

std::string difference(const yoke_comm_signature &ours, const yoke_comm_signature &theirs)
{
    if (ours.group != theirs.group) return "the group";
    if (ours.op != theirs.op) return "the call";
    if (ours.on_device != theirs.on_device)
        return "the place of the tensor, host memory or a device";
    if (ours.sequence != theirs.sequence)
        return format("the order, call %llu and call %llu",
                      static_cast<unsigned long long>(ours.sequence),
                      static_cast<unsigned long long>(theirs.sequence));
    if (ours.dtype != theirs.dtype) return "the dtype";
    if (ours.count != theirs.count) return "the number of elements";
    if (ours.reduction != theirs.reduction) return "the reduction";
    if (ours.root != theirs.root) return "the root";
    if (ours.flags != theirs.flags) return "reduce_dtype";
    return "nothing";
}

}  // namespace yoke
