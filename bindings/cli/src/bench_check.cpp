// Check of collectives. Every rank knows the values of all ranks: small whole numbers that repeat after some
// elements. So each rank knows the exact result: sums are whole as well, and an average is rounded once.
#include "bindings/cli/src/bench_collectives.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace yoke::cli {

namespace {

constexpr int64_t kPeriod = 60;
constexpr int64_t kPiece = kPeriod << 14;  // elements compared at a time
constexpr int32_t kAdding = 60;            // ranks beyond it have zeros where sums must fit 8 bits

// Returns the value of `rank` in place `i` of its tensor.
double value_of(int32_t rank, int64_t i, int32_t reduction, bool reduces)
{
    const int64_t j = i % kPeriod;
    if (reduces && reduction == YOKE_REDUCE_PROD)  // 1, but of one rank 2 or 3
        return rank == j % 2 ? static_cast<double>(2 + j % 3 / 2) : 1;
    if (reduces && (reduction == YOKE_REDUCE_SUM || reduction == YOKE_REDUCE_AVG))
        return rank < kAdding ? static_cast<double>((3 * rank + j) % 3) : 0;
    return static_cast<double>((7 * rank + j) % 11);
}

double combined(double one, double other, int32_t reduction)
{
    switch (reduction) {
        case YOKE_REDUCE_PROD:
            return one * other;
        case YOKE_REDUCE_MIN:
            return std::min(one, other);
        case YOKE_REDUCE_MAX:
            return std::max(one, other);
        default:
            return one + other;
    }
}

// Returns the step from 1 to the next number of a dtype with averages.
double step_of(yoke_dtype dtype)
{
    switch (dtype) {
        case YOKE_F64:
            return 0x1p-52;
        case YOKE_F32:
            return 0x1p-23;
        case YOKE_F16:
            return 0x1p-10;
        default:
            return 0x1p-7;
    }
}

}  // namespace

Tensor part_of(const Tensor &whole, int64_t begin, int64_t count)
{
    const int64_t end = begin + count;
    return make<Tensor>(yoke_slice, whole.get(), int64_t{0}, &begin, &end, int64_t{1});
}

KnownValues::KnownValues(const CollectiveOp &op, const RoundOptions &options, int32_t rank,
                         int32_t size)
    : op_(op),
      options_(options),
      rank_(rank),
      size_(size),
      item_(yoke_dtype_size(options.dtype)),
      sources_(source_patterns()),
      reduced_(reduced_pattern())
{
}

// Returns doubles in the bytes of the dtype, as a cast makes them.
std::vector<char> KnownValues::encoded(const std::vector<double> &values) const
{
    const auto count = static_cast<int64_t>(values.size());
    const Device host = make<Device>(yoke_device_open, "cpu");
    const Tensor wide = make<Tensor>(yoke_empty, &count, int64_t{1}, YOKE_F64, host.get());
    const auto bytes = count * static_cast<int64_t>(sizeof(double));
    check(yoke_tensor_copy_from_host(wide.get(), values.data(), bytes));
    const Tensor cast = make<Tensor>(yoke_tensor_to, wide.get(), host.get(), options_.dtype);
    std::vector<char> made(static_cast<size_t>(count * item_));
    check(yoke_tensor_copy_to_host(cast.get(), made.data(), count * item_));
    return made;
}

std::vector<double> KnownValues::decoded(const std::vector<char> &bytes, int64_t count) const
{
    const Device host = make<Device>(yoke_device_open, "cpu");
    const Tensor narrow = make<Tensor>(yoke_empty, &count, int64_t{1}, options_.dtype, host.get());
    check(yoke_tensor_copy_from_host(narrow.get(), bytes.data(), count * item_));
    const Tensor wide = make<Tensor>(yoke_tensor_to, narrow.get(), host.get(), YOKE_F64);
    std::vector<double> made(static_cast<size_t>(count));
    check(yoke_tensor_copy_to_host(wide.get(), made.data(),
                                   count * static_cast<int64_t>(sizeof(double))));
    return made;
}

std::vector<char> KnownValues::source_patterns() const
{
    std::vector<double> values;
    for (int32_t rank = 0; rank < size_; ++rank)
        for (int64_t i = 0; i < kPeriod; ++i)
            values.push_back(value_of(rank, i, options_.reduction, op_.reduces));
    return encoded(values);
}

std::vector<char> KnownValues::reduced_pattern() const
{
    const int32_t reduction = options_.reduction;
    std::vector<double> values;
    for (int64_t i = 0; i < kPeriod; ++i) {
        double all = value_of(0, i, reduction, true);
        for (int32_t rank = 1; rank < size_; ++rank)
            all = combined(all, value_of(rank, i, reduction, true), reduction);
        values.push_back(reduction == YOKE_REDUCE_AVG ? all / size_ : all);
    }
    return encoded(values);
}

void KnownValues::fill(const Tensor &whole) const
{
    const char *period = sources_.data() + rank_ * kPeriod * item_;
    const int64_t count = yoke_tensor_numel(whole.get());
    std::vector<char> piece(static_cast<size_t>(std::min(count, kPiece) * item_));
    for (int64_t i = 0; i < std::min(count, kPiece); ++i)
        memcpy(piece.data() + i * item_, period + i % kPeriod * item_, static_cast<size_t>(item_));
    for (int64_t at = 0; at < count; at += kPiece) {
        const int64_t now = std::min(kPiece, count - at);
        check(yoke_tensor_copy_from_host(part_of(whole, at, now).get(), piece.data(), now * item_));
    }
}

// Returns the values from place `i` of this rank's result.
const char *KnownValues::expected(int64_t i, int64_t count) const
{
    const auto reduced = [&](int64_t at) { return reduced_.data() + at % kPeriod * item_; };
    const auto source = [&](int64_t rank, int64_t at) {
        return sources_.data() + (rank * kPeriod + at % kPeriod) * item_;
    };
    const int64_t own = rank_ * count;
    switch (op_.kind) {
        case CollectiveOp::kBroadcast:
            return source(options_.root, i);
        case CollectiveOp::kAllGather:
        case CollectiveOp::kGather:
            return source(i / count, i % count);
        case CollectiveOp::kScatter:
            return source(options_.root, own + i);
        case CollectiveOp::kReduceScatter:
            return reduced(own + i);
        case CollectiveOp::kAllToAll:
            return source(i / count, own + i % count);
        case CollectiveOp::kSendRecv:
            return source((rank_ + size_ - 1) % size_, i);
        default:
            return reduced(i);
    }
}

// Returns how many of `now` elements from place `at` on are wrong: further from the expected value than the rounding
// of each rank's part and of each addition explains.
int64_t KnownValues::count_apart(const std::vector<char> &piece, int64_t at, int64_t now,
                                 int64_t count) const
{
    std::vector<char> wanted(static_cast<size_t>(now * item_));
    for (int64_t i = 0; i < now; ++i)
        memcpy(wanted.data() + i * item_, expected(at + i, count), static_cast<size_t>(item_));
    const std::vector<double> had = decoded(piece, now), must = decoded(wanted, now);
    int64_t wrong = 0;
    for (size_t i = 0; i < had.size(); ++i) {
        const double most = step_of(options_.dtype) * size_ * std::max(1.0, std::abs(must[i]));
        wrong += !(std::abs(had[i] - must[i]) <= most);
    }
    return wrong;
}

int64_t KnownValues::count_wrong(const Tensor &result, int64_t count) const
{
    const int64_t elements = yoke_tensor_numel(result.get());
    std::vector<char> piece(static_cast<size_t>(std::min(elements, kPiece) * item_));
    int64_t wrong = 0;
    for (int64_t at = 0; at < elements; at += kPiece) {
        const int64_t now = std::min(kPiece, elements - at);
        check(yoke_tensor_copy_to_host(part_of(result, at, now).get(), piece.data(), now * item_));
        if (options_.is_rounded && op_.reduces) {
            wrong += count_apart(piece, at, now, count);
            continue;
        }
        for (int64_t i = 0; i < now; ++i)
            wrong += memcmp(piece.data() + i * item_, expected(at + i, count),
                            static_cast<size_t>(item_)) != 0;
    }
    return wrong;
}

}  // namespace yoke::cli
