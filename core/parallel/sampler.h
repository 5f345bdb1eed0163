// sampler.h: examples of a data set for each rank in an epoch.
//
// An epoch is an order of all examples, alike on all ranks, dealt out in turn. If shuffled, the order is a
// permutation, computed index by index from seed and epoch, so no rank holds a list of all examples. A state is the
// epoch and how much of its order all ranks together have consumed. The state does not depend on the number of ranks,
// so another number of ranks may go on.
#pragma once

#include "core/base/refcount.h"
#include "core/parallel/sampler_options.h"

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace yoke {

class Group;

// Permutation of 0 to count - 1.
class Shuffle {
public:
    Shuffle(int64_t count, int64_t seed, int64_t epoch);
    int64_t operator()(int64_t place) const;

private:
    static constexpr int kRounds = 8;
    uint64_t mixed(uint64_t value) const;

    uint64_t count_;
    int half_;  // bits
    uint64_t keys_[kRounds];
};

}  // namespace yoke

// Sampler for a single thread at a time, or for several: each call is atomic.
struct yoke_sampler final : public yoke::RefCounted {
    // Makes a sampler at the beginning of epoch 0. Raises YOKE_E_VALUE, with the argument and its value, for invalid
    // options.
    explicit yoke_sampler(yoke::SamplerOptions options);

    // Sets the epoch of the next pass. The pass starts at the epoch's beginning, unless a loaded state has the same
    // epoch. Raises YOKE_E_VALUE for an epoch below 0. Warns once if the epoch does not go forward after a regroup.
    void set_epoch(int64_t epoch);
    // Begins a pass over this rank's part of the whole epoch, or, after load, of the rest of the epoch.
    void begin();
    // Returns the next example of the pass; null at the end of the pass.
    std::optional<int64_t> next();
    // Returns the number of examples of a pass that begins now.
    int64_t length() const;
    yoke::SamplerState state() const;
    // Takes a state: the next pass goes over the rest of the state's epoch. Raises YOKE_E_VALUE for a state that no
    // pass can reach.
    void load(yoke::SamplerState state);
    // Deals the rest of the epoch, behind the furthest rank, among the ranks of the group, from the next pass on. All
    // ranks of the group call the function. Shares keep their proportions. Raises YOKE_E_VALUE if only some ranks
    // have shares, or for unlike numbers of examples.
    void regroup(yoke::Group &group);

private:
    void warn_of_epoch_again(int64_t epoch);
    // Pass over the order from `from` to `end`.
    struct Pass {
        int64_t from = 0,
                end = 0;  // places of the order; from `count` on the order repeats
        bool is_begun = false;
        bool is_over = false;  // next() has reported the end to this rank
    };
    Pass pass_from(int64_t consumed) const;
    int64_t length_of(const Pass &pass) const;
    int32_t next_of(std::vector<double> &dealt, int64_t before) const;  // next rank, with shares
    bool is_own(int64_t place);
    int64_t share_of(int64_t all) const;
    int64_t taken_by_all() const;

    mutable std::mutex mutex_;
    yoke::SamplerOptions options_;
    int64_t epoch_ = 0;
    bool is_regrouped_ = false;       // with no warning since
    std::optional<int64_t> resumed_;  // consumed examples of a loaded state, until a pass begins
    Pass pass_;
    int64_t place_ = 0, taken_ = 0;  // place in the pass; examples taken by this rank
    std::vector<double> dealt_;      // by rank, where shares are not equal
    std::optional<yoke::Shuffle> shuffle_;
};
