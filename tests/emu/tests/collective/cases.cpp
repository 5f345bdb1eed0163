#include "cases.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/common/collective.h"

namespace yoke::test {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Returns small numbers; each dtype can represent their sums and products.
double number(int rank, int64_t i)
{
    return static_cast<double>((rank + i * (rank + 2)) % 3 + 1);
}

int64_t parts_in(int32_t op, int size)
{
    const bool has =
        op == YOKE_COMM_SCATTER || op == YOKE_COMM_REDUCE_SCATTER || op == YOKE_COMM_ALL_TO_ALL;
    return has ? size : 1;
}

int64_t parts_out(int32_t op, int size)
{
    const bool has =
        op == YOKE_COMM_ALL_GATHER || op == YOKE_COMM_GATHER || op == YOKE_COMM_ALL_TO_ALL;
    return has ? size : 1;
}

// Returns all parts given by a rank.
std::vector<double> given(const Case &is, int rank, int size)
{
    std::vector<double> values(static_cast<size_t>(is.count * parts_in(is.op, size)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = number(rank, static_cast<int64_t>(i));
    if (is.dtype == YOKE_BOOL)
        for (double &x : values) x = x > 1;
    return values;
}

double reduce(int32_t reduction, double a, double b)
{
    switch (reduction) {
        case YOKE_REDUCE_PROD:
            return a * b;
        case YOKE_REDUCE_MIN:
            return std::isnan(a) || std::isnan(b) ? kNan : std::min(a, b);
        case YOKE_REDUCE_MAX:
            return std::isnan(a) || std::isnan(b) ? kNan : std::max(a, b);
        default:
            return a + b;
    }
}

// Returns the right output of a rank, or an empty vector.
std::vector<double> wanted(const Case &is, const std::vector<std::vector<double>> &in, int rank)
{
    const int size = static_cast<int>(in.size());
    const auto count = static_cast<size_t>(is.count), me = static_cast<size_t>(rank);
    const auto slice = [&](size_t from, size_t part) {
        const auto begin = in[from].begin() + static_cast<std::ptrdiff_t>(part * count);
        return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(count));
    };
    std::vector<double> out;
    const auto add = [&](const std::vector<double> &more) {
        out.insert(out.end(), more.begin(), more.end());
    };
    const bool is_root = is.root == rank;
    switch (is.op) {
        case YOKE_COMM_BROADCAST:
            return in[static_cast<size_t>(is.root)];
        case YOKE_COMM_SCATTER:
            return slice(static_cast<size_t>(is.root), me);
        case YOKE_COMM_GATHER:
            if (!is_root) return {};
            [[fallthrough]];
        case YOKE_COMM_ALL_GATHER:
            for (size_t from = 0; from < in.size(); ++from) add(slice(from, 0));
            return out;
        case YOKE_COMM_ALL_TO_ALL:
            for (size_t from = 0; from < in.size(); ++from) add(slice(from, me));
            return out;
        default:
            break;
    }
    if (is.op == YOKE_COMM_REDUCE && !is_root) return {};
    out = in[0];
    for (size_t from = 1; from < in.size(); ++from)
        for (size_t i = 0; i < out.size(); ++i) out[i] = reduce(is.reduction, out[i], in[from][i]);
    if (is.reduction == YOKE_REDUCE_AVG)
        for (double &x : out) x /= size;
    if (is.op == YOKE_COMM_REDUCE_SCATTER)
        out = std::vector<double>(out.begin() + static_cast<std::ptrdiff_t>(me * count),
                                  out.begin() + static_cast<std::ptrdiff_t>((me + 1) * count));
    return out;
}

void expect_values(const Case &is, const std::vector<double> &found, const std::vector<double> &to)
{
    ASSERT_EQ(found.size(), to.size());
    const double slack = is.reduction == YOKE_REDUCE_AVG ? 0.01 : 0;
    size_t wrong = 0;
    for (size_t i = 0; i < to.size(); ++i) {
        const bool same = std::isnan(to[i])
                              ? std::isnan(found[i])
                              : found[i] == to[i] || std::fabs(found[i] - to[i]) <= slack * to[i];
        if (!same && ++wrong <= 3)
            ADD_FAILURE() << kernels::call_name(is.op) << " of dtype " << is.dtype << ", reduction "
                          << is.reduction << ", element " << i << " is " << found[i] << ", not "
                          << to[i];
    }
    EXPECT_EQ(wrong, 0u);
}

}  // namespace

void run(Rank &rank, const Case &is, const std::vector<std::vector<double>> &in, Place place)
{
    const bool is_root = is.root == rank.rank;
    const size_t item = size_of(is.dtype), count = static_cast<size_t>(is.count) * item;
    const bool gives = is.op != YOKE_COMM_SCATTER && is.op != YOKE_COMM_BROADCAST ? true : is_root;
    const bool takes = is.op != YOKE_COMM_GATHER && is.op != YOKE_COMM_REDUCE ? true : is_root;
    const size_t in_bytes = count * static_cast<size_t>(parts_in(is.op, rank.size)),
                 out_bytes = count * static_cast<size_t>(parts_out(is.op, rank.size));
    char *memory = static_cast<char *>(rank.room(std::max(in_bytes, out_bytes)));
    char *from = memory, *to = memory;
    const bool is_broadcast = is.op == YOKE_COMM_BROADCAST;
    if (place == Place::kApart && !is_broadcast) to = static_cast<char *>(rank.room(out_bytes));
    const size_t part = static_cast<size_t>(rank.rank) * count;
    if (place == Place::kOwnPart) (is.op == YOKE_COMM_ALL_GATHER ? from : to) += part;
    const std::string bytes = encode(is.dtype, in[static_cast<size_t>(rank.rank)]);
    if (gives && !bytes.empty()) {
        const void *source = rank.upload(bytes);
        EXPECT_EQ(open_module().copy(rank.device, from, source, bytes.size(), YOKE_COPY_DEVICE,
                                     rank.stream),
                  YOKE_OK);
    }
    ASSERT_EQ(rank.run(is.op, is.dtype, is.count, gives ? from : nullptr, takes ? to : nullptr,
                       is.root, is.reduction, is.flags),
              YOKE_OK)
        << failure().message;
    if (takes)
        expect_values(is, decode(is.dtype, rank.download(to, out_bytes)),
                      wanted(is, in, rank.rank));
    if (gives && to != from && place == Place::kApart) {
        EXPECT_EQ(rank.download(from, in_bytes), bytes) << "the input is as it was";
    }
}

std::vector<std::vector<double>> given_by_all(const Case &is, int size)
{
    std::vector<std::vector<double>> in;
    for (int rank = 0; rank < size; ++rank) in.push_back(given(is, rank, size));
    return in;
}

void run(const Layout &layout, const std::vector<Case> &cases, Place place)
{
    with_ranks(layout, [&](Rank &rank) {
        for (const Case &is : cases) run(rank, is, given_by_all(is, rank.size), place);
        rank.sync();
        rank.wait();
    });
}

}  // namespace yoke::test
