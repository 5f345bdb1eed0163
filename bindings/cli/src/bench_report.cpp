#include "bindings/cli/src/bench_report.h"

#include <algorithm>
#include <cstdio>

namespace yoke::cli {

namespace {

struct Rates {
    double algorithm, bus;  // GB/s
};

Rates rates_of(const CollectiveOp &op, int32_t ranks, const Round &round, const RoundTime &time)
{
    const double rate = static_cast<double>(round.bytes) / time.seconds / 1e9;
    return {rate, rate * op.bus_factor(ranks)};
}

std::string reduction_of(const CollectiveOp &op, const CollectivesOptions &options)
{
    return op.reduces ? options.reduction : "none";
}

int32_t root_of(const CollectiveOp &op, const CollectivesOptions &options)
{
    return op.has_root ? options.rounds.root : -1;
}

void print_ranks(const std::vector<BenchMember> &members, const CollectivesOptions &options)
{
    printf(
        "# yoke %s nranks %zu minBytes %lld maxBytes %lld step: %lld(%s) warmup iters: %d iters: %d validation: %d\n#\n# Using ranks\n",
        yoke_version(), members.size(), static_cast<long long>(options.least),
        static_cast<long long>(options.most),
        static_cast<long long>(options.step ? options.step : options.factor),
        options.step ? "bytes" : "factor", options.rounds.warmup, options.rounds.iterations,
        options.rounds.checks);
    int32_t rank = 0;
    for (const BenchMember &one : members)
        printf("#  Rank %2d Pid %6lld on %10s device %s\n", rank++,
               static_cast<long long>(one.process), one.host, one.device);
}

void print_heading(const CollectiveOp &op)
{
    printf("#\n# %s: time of a call, iters calls one after the other; mean over ranks%s\n#\n",
           op.name,
           op.takes_one ? "; out of place is a copy to the output and the call on the output" : "");
    printf("# %53s%26s%33s\n", "", "out-of-place", "in-place");
    constexpr const char *kSide = "    time   algbw   busbw #wrong";
    printf("#%11s%14s%10s%8s%8s %s %s\n", "size", "count", "type", "redop", "root", kSide, kSide);
    constexpr const char *kUnits = "    (us)  (GB/s)  (GB/s)       ";
    printf("#%11s%14s%10s%8s%8s %s %s\n", "(B)", "(elements)", "", "", "", kUnits, kUnits);
}

void print_side(const CollectiveOp &op, int32_t ranks, const Round &round, const RoundTime &time)
{
    if (!time.is_there) {
        printf(" %8s %7s %7s %6s", "N/A", "N/A", "N/A", "N/A");
        return;
    }
    const Rates rates = rates_of(op, ranks, round, time);
    const std::string wrong = time.wrong < 0 ? "N/A" : std::to_string(time.wrong);
    printf(time.seconds < 0.1 ? " %8.2f" : " %8.0f", time.seconds * 1e6);
    printf(" %7.2f %7.2f %6s", rates.algorithm, rates.bus, wrong.c_str());
}

void print_round(const CollectiveOp &op, int32_t ranks, const CollectivesOptions &options,
                 const Round &round)
{
    printf("%12lld%14lld%10s%8s%8d", static_cast<long long>(round.bytes),
           static_cast<long long>(round.count), yoke_dtype_name(options.rounds.dtype),
           reduction_of(op, options).c_str(), root_of(op, options));
    print_side(op, ranks, round, round.out_of_place);
    print_side(op, ranks, round, round.in_place);
    puts("");
    fflush(stdout);
}

Json side_json(const CollectiveOp &op, int32_t ranks, const Round &round, const RoundTime &time)
{
    if (!time.is_there) return Json();
    const Rates rates = rates_of(op, ranks, round, time);
    return {{"time", time.seconds},
            {"algorithm_bandwidth", rates.algorithm * 1e9},
            {"bus_bandwidth", rates.bus * 1e9},
            {"wrong", time.wrong < 0 ? Json() : Json(time.wrong)}};
}

}  // namespace

CollectivesReport::CollectivesReport(const CollectivesOptions &options,
                                     const std::vector<BenchMember> &members, bool is_printed)
    : options_(options),
      members_(members),
      is_text_(is_printed && !options.json),
      is_json_(is_printed && options.json)
{
    if (is_text_) print_ranks(members, options);
}

void CollectivesReport::begin(const CollectiveOp &op) const
{
    if (is_text_) print_heading(op);
}

void CollectivesReport::add_to_sum(const CollectiveOp &op, const Round &round,
                                   const RoundTime &time)
{
    if (!time.is_there) return;
    bus_ += rates_of(op, static_cast<int32_t>(members_.size()), round, time).bus;
    wrong_ += std::max<int64_t>(time.wrong, 0);
    ++sides_;
}

double CollectivesReport::mean_bus() const
{
    return sides_ ? bus_ / static_cast<double>(sides_) : 0;
}

void CollectivesReport::add(const CollectiveOp &op, const Round &round)
{
    const auto ranks = static_cast<int32_t>(members_.size());
    add_to_sum(op, round, round.out_of_place);
    add_to_sum(op, round, round.in_place);
    if (is_text_) print_round(op, ranks, options_, round);
    rounds_.push_back({{"op", op.name},
                       {"bytes", round.bytes},
                       {"count", round.count},
                       {"dtype", yoke_dtype_name(options_.rounds.dtype)},
                       {"reduction", op.reduces ? Json(options_.reduction) : Json()},
                       {"root", op.has_root ? Json(options_.rounds.root) : Json()},
                       {"out_of_place", side_json(op, ranks, round, round.out_of_place)},
                       {"in_place", side_json(op, ranks, round, round.in_place)}});
}

int CollectivesReport::end() const
{
    if (is_text_ && options_.rounds.checks)
        printf("# Out of bounds values : %lld %s\n", static_cast<long long>(wrong_),
               wrong_ ? "FAILED" : "OK");
    if (is_text_) printf("# Avg bus bandwidth    : %g\n#\n", mean_bus());
    if (is_json_) print_all();
    return wrong_ ? 1 : 0;
}

void CollectivesReport::print_all() const
{
    Json ranks = Json::array();
    for (const BenchMember &one : members_)
        ranks.push_back({{"host", one.host}, {"process", one.process}, {"device", one.device}});
    print_json({{"version", yoke_version()},
                {"ranks", ranks},
                {"iterations", options_.rounds.iterations},
                {"warmup", options_.rounds.warmup},
                {"rounds", rounds_},
                {"mean_bus_bandwidth", mean_bus() * 1e9},
                {"wrong", options_.rounds.checks ? Json(wrong_) : Json()}});
}

}  // namespace yoke::cli
