// bench_report.h: options of `yoke bench collectives`, and its output: nccl-tests' columns, or JSON.
#pragma once

#include "bindings/cli/src/bench_collectives.h"
#include "bindings/cli/src/json.h"

#include <memory>
#include <nlohmann/json.hpp>

namespace yoke::cli {

inline constexpr const char *kReductions[] = {"sum", "prod", "min", "max",
                                              "avg"};  // by YOKE_REDUCE_*

struct CollectivesOptions {
    std::vector<std::string> ops;
    std::vector<std::string> checked_ops;  // words after -c, whose number is optional
    int64_t least = 8, most = int64_t{1} << 30, step = 0, factor = 2;
    std::string dtype = "float32", reduction = "sum", backend;
    RoundOptions rounds;
    int32_t ranks = 0, report = -1;
    double timeout = 600;
    bool json = false;
};

// Facts of a rank for the other ranks, in their memory layout.
struct BenchMember {
    char host[64], device[32];
    int64_t process, free;
};

// Report, printed by a single rank (`is_printed`); text lines are printed at once.
class CollectivesReport {
public:
    CollectivesReport(const CollectivesOptions &options, const std::vector<BenchMember> &members,
                      bool is_printed);
    void begin(const CollectiveOp &op) const;
    void add(const CollectiveOp &op, const Round &round);
    // Prints the end of the report and returns the exit code; 1: a result was wrong.
    int end() const;

private:
    void add_to_sum(const CollectiveOp &op, const Round &round, const RoundTime &time);
    double mean_bus() const;
    void print_all() const;

    const CollectivesOptions &options_;
    const std::vector<BenchMember> &members_;
    const bool is_text_, is_json_;
    double bus_ = 0;  // sum over both sides
    int64_t sides_ = 0, wrong_ = 0;
    Json rounds_ = Json::array();
};

}  // namespace yoke::cli
