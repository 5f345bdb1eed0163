// sampler.h: which examples of a data set each rank takes in an epoch.
//
// An epoch is one order of all examples, alike on all ranks, dealt out one by one. Shuffled, it is a permutation that
// is computed index by index from seed and epoch, so that no rank holds a list of all. A state is an epoch and how much
// of its order all ranks together have consumed: it says nothing of how many they were, so that others may go on.
#pragma once

#include "core/base/refcount.h"
#include "core/parallel/sampler_options.h"

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace yoke {

class Group;

// A permutation of 0 to count - 1.
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

// For one thread at a time, or several: each call is whole.
struct yoke_sampler final : public yoke::RefCounted {
    // Raises YOKE_E_VALUE, with the argument and both values.
    explicit yoke_sampler(yoke::SamplerOptions options);

    // The next pass is one of this epoch, from its beginning, unless it is the epoch of a state that was loaded. Raises
    // YOKE_E_VALUE for one below 0. Warns once where since a regroup it does not go forward.
    void set_epoch(int64_t epoch);
    // Begins a pass over what this rank gets: of the whole epoch, or after load of what is left of it.
    void begin();
    // The next example of the pass; nothing at its end.
    std::optional<int64_t> next();
    // How many examples a pass has that begins now.
    int64_t length() const;
    yoke::SamplerState state() const;
    // Raises YOKE_E_VALUE for what no pass can come to.
    void load(yoke::SamplerState state);
    // What is left of the epoch, to the one that has come furthest, is dealt among the ranks of the group, which all
    // call it, from the next pass on; with shares as large beside each other as they were. Raises YOKE_E_VALUE where
    // some ranks have shares and some none, or unlike numbers of examples.
    void regroup(yoke::Group &group);

private:
    void warn_of_epoch_again(int64_t epoch);
    // One pass: what is dealt of the order from `from` on.
    struct Pass {
        int64_t from = 0,
                end = 0;  // places of the order; those from `count` on are its beginning again
        bool is_begun = false;
        bool is_over = false;  // this rank has been told that there is no more
    };
    Pass pass_from(int64_t consumed) const;
    int64_t length_of(const Pass &pass) const;
    int32_t next_of(std::vector<double> &dealt, int64_t before) const;  // who gets it, with shares
    bool is_own(int64_t place);
    int64_t share_of(int64_t all) const;
    int64_t taken_by_all() const;

    mutable std::mutex mutex_;
    yoke::SamplerOptions options_;
    int64_t epoch_ = 0;
    bool is_regrouped_ = false;       // and no warning since
    std::optional<int64_t> resumed_;  // what was consumed of a state, until a pass begins
    Pass pass_;
    int64_t place_ = 0, taken_ = 0;  // of the pass; of what this rank gets of it
    std::vector<double> dealt_;      // by rank, where shares are not equal
    std::optional<yoke::Shuffle> shuffle_;
};
