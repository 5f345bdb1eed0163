// Work of a stream for a call of NCCL's. See nccl_fake.h.
#include <cstdlib>
#include <cstring>

#include "tests/fakes/cuda/nccl_fake.h"

namespace yoke::fake {

using Clock = std::chrono::steady_clock;

struct Kernel {
    std::shared_ptr<Member> member;
    std::vector<Op> ops;
    bool is_stuck;
    Clock::time_point earliest_end;
};

namespace {

constexpr int kStray = 0xA5;  // value of outputs where NCCL would leave garbage

void forget(const Kernel &kernel)
{
    const std::lock_guard lock(kernel.member->mutex);
    kernel.member->pending.erase(&kernel);
}

bool has_root(Kind kind)
{
    return kind == kReduce || kind == kBroadcast || kind == kGather || kind == kScatter;
}

// Tells whether the input has a part for each rank; takes_parts() is about the output.
bool gives_parts(Kind kind)
{
    return kind == kReduceScatter || kind == kAlltoAll || kind == kScatter;
}

bool takes_parts(Kind kind)
{
    return kind == kAllGather || kind == kAlltoAll || kind == kGather;
}

int channel_of(const Op &op)
{
    return op.kind == kSend   ? kSendTo + op.root
           : op.kind == kRecv ? kReceiveFrom + op.root
                              : kCollectives;
}

// Draws how late a kernel ends: up to FAKE_NCCL_LATE milliseconds.
Clock::duration lateness()
{
    const char *setting = getenv("FAKE_NCCL_LATE");
    const long most = setting ? 1000 * atol(setting) : 0;
    if (most <= 0) return {};
    const char *const seed = getenv("FAKE_CUDA_SEED");
    static thread_local uint64_t random =
        (seed ? strtoull(seed, nullptr, 10) + 1 : 1) * 0x9e3779b97f4a7c15u;
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return std::chrono::microseconds(static_cast<long>((random >> 11) % 0x7fffffff) % most);
}

int begin(void *context)
{
    auto &kernel = *static_cast<Kernel *>(context);
    const Member &member = *kernel.member;
    kernel.earliest_end = Clock::now() + lateness();
    if (kernel.is_stuck || member.is_aborted) return 0;
    for (const Op &op : kernel.ops) {
        const Posted call{
            op.kind,  op.dtype, op.reduction,         has_root(op.kind) ? op.root : -1,
            op.count, 0,        bytes_in(op, member), 0};
        member.shared->post(channel_of(op), call, op.in);
    }
    return 0;
}

// Tells whether the peers have come with the same kind of call. Others wait for ever, as NCCL's kernels do.
bool is_matched(const Op &op, const Member &member)
{
    const Shared &shared = *member.shared;
    if (op.kind == kSend) return shared.has(op.root, kReceiveFrom + member.rank, op.sequence);
    if (op.kind == kRecv) return shared.has(op.root, kSendTo + member.rank, op.sequence);
    for (int rank = 0; rank < member.size; ++rank) {
        if (!shared.has(rank, kCollectives, op.sequence)) return false;
        const Posted call = shared.read(rank, kCollectives, op.sequence);
        if (call.kind != op.kind || (has_root(op.kind) && call.root != op.root)) return false;
    }
    return true;
}

int is_over(void *context)
{
    const auto &kernel = *static_cast<const Kernel *>(context);
    if (kernel.member->is_aborted) return Clock::now() >= kernel.member->end_of_aborted;
    if (kernel.is_stuck || Clock::now() < kernel.earliest_end) return 0;
    for (const Op &op : kernel.ops)
        if (!is_matched(op, *kernel.member)) return 0;
    return 1;
}

// Returns the calls of all ranks in their order; for a receive, the sender's call.
std::vector<Posted> read_calls(const Op &op, const Member &member)
{
    if (op.kind == kRecv) return {member.shared->read(op.root, kSendTo + member.rank, op.sequence)};
    std::vector<Posted> calls;
    for (int rank = 0; rank < member.size; ++rank)
        calls.push_back(member.shared->read(rank, kCollectives, op.sequence));
    return calls;
}

bool are_alike(const std::vector<Posted> &calls, const Op &op)
{
    for (const Posted &call : calls)
        if (call.count != op.count || call.dtype != op.dtype || call.reduction != op.reduction)
            return false;
    return true;
}

// Writes the output: `parts` has each rank's contribution.
void write_output(const Op &op, const std::vector<const char *> &parts)
{
    auto *const out = static_cast<char *>(op.out);
    const size_t bytes = op.count * size_of(op.dtype);
    if (op.kind == kAllReduce || op.kind == kReduce || op.kind == kReduceScatter)
        return reduce(parts, out, op.count, op.dtype, op.reduction);
    for (size_t i = 0; bytes && i < parts.size(); ++i) memcpy(out + i * bytes, parts[i], bytes);
}

void end_op(const Op &op, Member &member)
{
    if (const size_t bytes = bytes_out(op, member)) {
        const std::vector<Posted> calls = read_calls(op, member);
        if (are_alike(calls, op)) {
            std::deque<View> views;
            std::vector<const char *> parts;
            const size_t part = op.count * size_of(op.dtype),
                         skipped =
                             gives_parts(op.kind) ? part * static_cast<size_t>(member.rank) : 0;
            for (const Posted &call : calls)
                if (call.bytes) {
                    views.emplace_back(member.shared->view(call));
                    parts.push_back(views.back().data() + skipped);
                }
            write_output(op, parts);
        } else {
            memset(op.out, kStray, bytes);
        }
    }
    if (op.kind != kSend) member.shared->take(channel_of(op));
}

int end(void *context)
{
    const auto &kernel = *static_cast<const Kernel *>(context);
    Member &member = *kernel.member;
    for (const Op &op : kernel.ops)
        if (!member.is_aborted)
            end_op(op, member);
        else if (const size_t bytes = bytes_out(op, member))
            memset(op.out, kStray, bytes);
    member.shared->reclaim();
    forget(kernel);
    return 0;
}

void drop(void *context)
{
    auto *const kernel = static_cast<Kernel *>(context);
    forget(*kernel);
    delete kernel;
}

constexpr fake_late kLate = {begin, is_over, end, drop};

struct Range {
    const char *first;
    size_t bytes;
    bool meets(const Range &other) const
    {
        return bytes && other.bytes && first < other.first + other.bytes &&
               other.first < first + bytes;
    }
};

Range input(const Op &op, const Member &member)
{
    return {static_cast<const char *>(op.in), bytes_in(op, member)};
}

Range output(const Op &op, const Member &member)
{
    return {static_cast<const char *>(op.out), bytes_out(op, member)};
}

// Tells whether a call's input and output lie as NCCL's rules for calls in place allow.
bool is_in_place(const Op &op, const Member &member)
{
    const auto *const in = static_cast<const char *>(op.in);
    const auto *const out = static_cast<const char *>(op.out);
    const size_t mine = op.count * size_of(op.dtype) * static_cast<size_t>(member.rank);
    switch (op.kind) {
        case kAllGather:
        case kGather:
            return in == out + mine;
        case kReduceScatter:
        case kScatter:
            return out == in + mine;
        case kAlltoAll:
            return false;
        default:
            return in == out;
    }
}

ncclResult_t check_overlaps(const std::vector<Op> &ops, const Member &member)
{
    for (const Op &op : ops)
        for (const Op &other : ops) {
            const Range out = output(op, member);
            const bool meets =
                &op == &other ? out.meets(input(op, member)) && !is_in_place(op, member)
                              : out.meets(input(other, member)) || out.meets(output(other, member));
            if (meets)
                return refuse(
                    ncclInvalidUsage,
                    "an output of %zu bytes at %p overlaps what its kernel reads or writes",
                    out.bytes, op.out);
        }
    return ncclSuccess;
}

}  // namespace

size_t bytes_in(const Op &op, const Member &member)
{
    const size_t bytes = op.count * size_of(op.dtype);
    if (op.kind == kRecv ||
        ((op.kind == kBroadcast || op.kind == kScatter) && op.root != member.rank))
        return 0;
    return gives_parts(op.kind) ? bytes * static_cast<size_t>(member.size) : bytes;
}

size_t bytes_out(const Op &op, const Member &member)
{
    const size_t bytes = op.count * size_of(op.dtype);
    if (op.kind == kSend || ((op.kind == kReduce || op.kind == kGather) && op.root != member.rank))
        return 0;
    return takes_parts(op.kind) ? bytes * static_cast<size_t>(member.size) : bytes;
}

bool has_pending(Member &member)
{
    const std::lock_guard lock(member.mutex);
    return !member.pending.empty();
}

bool is_in_use(Member &member, const void *place, size_t bytes)
{
    const Range range{static_cast<const char *>(place), bytes};
    const std::lock_guard lock(member.mutex);
    for (const Kernel *kernel : member.pending)
        for (const Op &op : kernel->ops)
            if (range.meets(input(op, member)) || range.meets(output(op, member))) return true;
    return false;
}

ncclResult_t launch(const std::shared_ptr<Member> &member, std::vector<Op> ops, cudaStream_t stream,
                    bool is_stuck)
{
    if (const ncclResult_t wrong = check_overlaps(ops, *member)) return wrong;
    std::vector<const void *> used;
    for (Op &op : ops) {
        op.sequence = member->sequences[channel_of(op)]++;
        used.insert(used.end(), {op.in, op.out});
    }
    auto *const kernel = new Kernel{member, std::move(ops), is_stuck, {}};
    {
        const std::lock_guard lock(member->mutex);
        member->pending.insert(kernel);
    }
    const cudaError_t error = runtime().enqueue_late(member->device, stream, &kLate, kernel,
                                                     used.data(), used.size() * sizeof used[0]);
    return error ? refuse(ncclUnhandledCudaError, "a launch failed with CUDA's error %d", error)
                 : ncclSuccess;
}

}  // namespace yoke::fake
