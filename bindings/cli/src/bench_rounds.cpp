// Measuring collectives: a barrier, calls one after the other, and the time that each took here; the mean over ranks
// counts. The buffers are made once, for the largest size.
#include "bindings/cli/src/bench_collectives.h"

#include <algorithm>
#include <chrono>

namespace yoke::cli {

namespace {

double once(double)
{
    return 1;
}
double all_but_own(double ranks)
{
    return (ranks - 1) / ranks;
}
double there_and_back(double ranks)
{
    return 2 * (ranks - 1) / ranks;
}

}  // namespace

const std::vector<CollectiveOp> &collective_ops()
{
    using Op = CollectiveOp;
    static const std::vector<CollectiveOp> ops = {
        {"all_reduce", Op::kAllReduce, true, false, false, false, true, there_and_back},
        {"reduce", Op::kReduce, true, true, false, false, true, once},
        {"broadcast", Op::kBroadcast, false, true, false, false, true, once},
        {"all_gather", Op::kAllGather, false, false, false, true, false, all_but_own},
        {"gather", Op::kGather, false, true, false, true, false, all_but_own},
        {"scatter", Op::kScatter, false, true, true, false, false, all_but_own},
        {"reduce_scatter", Op::kReduceScatter, true, false, true, false, false, all_but_own},
        {"all_to_all", Op::kAllToAll, false, false, true, true, false, all_but_own},
        {"sendrecv", Op::kSendRecv, false, false, false, false, false, once},
    };
    return ops;
}

Round sized_round(const CollectiveOp &op, const RoundOptions &options, int32_t ranks, int64_t bytes)
{
    const int64_t item = yoke_dtype_size(options.dtype), parts = op.has_parts() ? ranks : 1;
    Round round;
    round.count = std::max<int64_t>(1, bytes / item / parts);
    round.bytes = round.count * item * parts;
    return round;
}

Rounds::Rounds(yoke_group *group, const CollectiveOp &op, const RoundOptions &options,
               int64_t most_bytes)
    : group_(group),
      op_(op),
      options_(options),
      rank_(yoke_group_rank(group)),
      size_(yoke_group_size(group)),
      device_(make<Device>(yoke_device_open, options.device.c_str()))
{
    count_ = sized_round(op, options, size_, most_bytes).count;
    in_ = buffer(in_elements());
    out_ = buffer(out_elements());
    if (options_.checks) known_.emplace(op, options, rank_, size_);
}

Tensor Rounds::buffer(int64_t elements) const
{
    Tensor made;
    if (options_.in_group_memory)
        made = make<Tensor>(yoke_group_empty_on, group_, &elements, int64_t{1}, options_.dtype,
                            device_.get());
    else
        made = make<Tensor>(yoke_empty, &elements, int64_t{1}, options_.dtype, device_.get());
    spoil(made);  // so that no page is met for the first time while time counts
    return made;
}

void Rounds::spoil(const Tensor &whole)
{
    yoke_scalar strange{};
    strange.kind = YOKE_ARG_INT;
    strange.v.i = 99;
    check(yoke_fill_(whole.get(), &strange));
}

// Returns the tensors of a call. In place, the tensor with parts is the buffer of both; the other tensor is this
// rank's part of it.
Rounds::Views Rounds::views(bool in_place) const
{
    Views made;
    const bool is_root = !op_.has_root || rank_ == options_.root;
    const int64_t own = rank_ * count_;
    made.t = part_of(in_, 0, in_elements());
    made.out = part_of(out_, 0, out_elements());
    if (in_place && is_root && op_.out_has_parts && !op_.in_has_parts)
        made.t = part_of(out_, own, count_);
    if (in_place && is_root && op_.in_has_parts)
        made.out = op_.out_has_parts ? part_of(in_, 0, in_elements()) : part_of(in_, own, count_);
    const bool is_written =
        is_root || op_.kind == CollectiveOp::kBroadcast || op_.kind == CollectiveOp::kScatter;
    Tensor &written = in_place && op_.takes_one ? made.t : made.out;
    if (is_written) made.result = part_of(written, 0, op_.takes_one ? count_ : out_elements());
    if (op_.kind == CollectiveOp::kGather && !is_root) made.out.reset();
    if (op_.kind == CollectiveOp::kScatter && !is_root) made.t.reset();
    return made;
}

void Rounds::call(const Views &views, bool in_place) const
{
    yoke_tensor *t = views.t.get(), *out = views.out.get();
    const int32_t root = options_.root, reduction = options_.reduction;
    if (op_.takes_one && !in_place) {
        const bool has_input = op_.kind != CollectiveOp::kBroadcast || rank_ == root;
        if (has_input) check(yoke_copy_(out, t));
        t = out;
    }
    switch (op_.kind) {
        case CollectiveOp::kAllReduce:
            return check(yoke_group_all_reduce(group_, t, reduction, nullptr));
        case CollectiveOp::kReduce:
            return check(yoke_group_reduce(group_, t, root, reduction, nullptr));
        case CollectiveOp::kBroadcast:
            return check(yoke_group_broadcast(group_, t, root, nullptr));
        case CollectiveOp::kAllGather:
            return check(yoke_group_all_gather(group_, out, t, nullptr));
        case CollectiveOp::kGather:
            return check(yoke_group_gather(group_, out, t, root, nullptr));
        case CollectiveOp::kScatter:
            return check(yoke_group_scatter(group_, out, t, root, nullptr));
        case CollectiveOp::kReduceScatter:
            return check(yoke_group_reduce_scatter(group_, out, t, reduction, nullptr));
        case CollectiveOp::kAllToAll:
            return check(yoke_group_all_to_all(group_, out, t, nullptr));
        case CollectiveOp::kSendRecv:
            break;
    }
    check(yoke_comm_coalesce_begin());
    check(yoke_group_send(group_, t, (rank_ + 1) % size_, nullptr));
    check(yoke_group_recv(group_, out, (rank_ + size_ - 1) % size_, nullptr));
    check(yoke_comm_coalesce_end());
}

// Returns the mean of the ranks' values.
double Rounds::mean(double value) const
{
    const int64_t one = 1;
    const Tensor cell = make<Tensor>(yoke_empty, &one, int64_t{1}, YOKE_F64, device_.get());
    check(yoke_tensor_copy_from_host(cell.get(), &value, sizeof value));
    check(yoke_group_all_reduce(group_, cell.get(), YOKE_REDUCE_AVG, nullptr));
    check(yoke_tensor_copy_to_host(cell.get(), &value, sizeof value));
    return value;
}

// Fills the buffers with known values and makes an extra call. Returns the number of wrong elements on all ranks.
int64_t Rounds::count_wrong(bool in_place) const
{
    const Views held = views(in_place);
    spoil(in_);
    spoil(out_);
    if (held.t) known_->fill(held.t);
    call(held, in_place);
    const int64_t wrong = held.result ? known_->count_wrong(held.result, count_) : 0;
    return static_cast<int64_t>(mean(static_cast<double>(wrong)) * size_ + 0.5);
}

RoundTime Rounds::time(bool in_place) const
{
    using Clock = std::chrono::steady_clock;
    RoundTime told;
    told.is_there = !in_place || op_.kind != CollectiveOp::kSendRecv;
    if (!told.is_there) return told;
    if (known_) told.wrong = count_wrong(in_place);
    const Views held = views(in_place);
    for (int32_t i = 0; i < options_.warmup; ++i) call(held, in_place);
    check(yoke_group_barrier(group_, nullptr));
    const auto start = Clock::now();
    for (int32_t i = 0; i < options_.iterations; ++i) call(held, in_place);
    check(yoke_device_synchronize(device_.get()));
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    told.seconds = mean(seconds / options_.iterations);
    return told;
}

Round Rounds::run(int64_t bytes)
{
    Round round = sized_round(op_, options_, size_, bytes);
    count_ = round.count;
    round.out_of_place = time(false);
    round.in_place = time(true);
    return round;
}

}  // namespace yoke::cli
