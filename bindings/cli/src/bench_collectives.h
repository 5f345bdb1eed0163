// bench_collectives.h: time of a group's collectives by size, and check of their results, for `yoke bench
// collectives`. All ranks of the group do the same at the same time.
#pragma once

#include "bindings/cli/src/handles.h"

#include <optional>
#include <string>
#include <vector>

namespace yoke::cli {

using Group = std::unique_ptr<yoke_group, Releaser<yoke_group_release>>;

// Op by its name in yoke/comm.h; "sendrecv" is a send to the next rank and a receive from the former rank.
struct CollectiveOp {
    enum Kind {
        kAllReduce,
        kReduce,
        kBroadcast,
        kAllGather,
        kGather,
        kScatter,
        kReduceScatter,
        kAllToAll,
        kSendRecv
    };
    const char *name;
    Kind kind;
    bool reduces, has_root;
    bool in_has_parts, out_has_parts;  // a part for each rank
    bool takes_one;  // the call has a single tensor: with two the input is copied first
    // Factor on bytes / time that gives the rate of each rank's link, for `ranks` ranks.
    double (*bus_factor)(double ranks);

    bool has_parts() const { return in_has_parts || out_has_parts; }
};
const std::vector<CollectiveOp> &collective_ops();

struct RoundOptions {
    yoke_dtype dtype = YOKE_F32;
    int32_t reduction = YOKE_REDUCE_SUM, root = 0;
    int32_t iterations = 20, warmup = 5;
    bool checks = false, in_group_memory = false;
    bool is_rounded = false;  // averages of floats may be rounded more than once
    std::string device;       // "": not chosen yet
};

struct RoundTime {
    bool is_there = false;  // there is no such way of calling it
    double seconds = 0;     // per call, mean over ranks
    int64_t wrong = -1;     // elements on all ranks; -1: not looked at
};
struct Round {
    int64_t bytes = 0, count = 0;  // bytes of the larger tensor; elements of a part
    RoundTime out_of_place, in_place;
};

// Returns a round with about this number of bytes, in which no part is empty.
Round sized_round(const CollectiveOp &op, const RoundOptions &options, int32_t ranks,
                  int64_t bytes);

// Returns a view of elements of a tensor of one axis.
Tensor part_of(const Tensor &whole, int64_t begin, int64_t count);

// Exact inputs and results of a collective on each rank.
class KnownValues {
public:
    KnownValues(const CollectiveOp &op, const RoundOptions &options, int32_t rank, int32_t size);
    // Fills a tensor with this rank's input.
    void fill(const Tensor &whole) const;
    // Returns how many elements of this rank's result are wrong, where a part has `count` elements.
    int64_t count_wrong(const Tensor &result, int64_t count) const;

private:
    std::vector<char> encoded(const std::vector<double> &values) const;
    std::vector<double> decoded(const std::vector<char> &bytes, int64_t count) const;
    int64_t count_apart(const std::vector<char> &piece, int64_t at, int64_t now,
                        int64_t count) const;
    std::vector<char> source_patterns() const;
    std::vector<char> reduced_pattern() const;
    const char *expected(int64_t place, int64_t count) const;

    const CollectiveOp op_;
    const RoundOptions options_;
    const int32_t rank_, size_;
    const int64_t item_;               // bytes
    const std::vector<char> sources_;  // a period of what each rank has, by rank
    const std::vector<char> reduced_;  // period of the results
};

// Rounds of an op, in buffers made once.
class Rounds {
public:
    Rounds(yoke_group *group, const CollectiveOp &op, const RoundOptions &options,
           int64_t most_bytes);
    Round run(int64_t bytes);

private:
    // Tensors of a call, and its result, if this rank has a result.
    struct Views {
        Tensor t, out, result;
    };
    Tensor buffer(int64_t elements) const;
    static void spoil(const Tensor &whole);  // with what no call makes
    int64_t in_elements() const { return count_ * (op_.in_has_parts ? size_ : 1); }
    int64_t out_elements() const { return count_ * (op_.out_has_parts ? size_ : 1); }
    Views views(bool in_place) const;
    void call(const Views &views, bool in_place) const;
    RoundTime time(bool in_place) const;
    double mean(double value) const;
    int64_t count_wrong(bool in_place) const;

    yoke_group *group_;
    const CollectiveOp op_;
    const RoundOptions options_;
    const int32_t rank_, size_;
    Device device_;
    Tensor in_, out_;
    int64_t count_ = 0;
    std::optional<KnownValues> known_;  // where results are looked at
};

}  // namespace yoke::cli
