// step.h: one backward of a module in which this rank takes part.
#pragma once

#include "core/comm/backwards.h"
#include "core/parallel/bucket_layout.h"
#include "core/parallel/step_header.h"

#include <vector>

namespace yoke {

// A backward: which gradients have come, which buckets the group has been given, and what the ranks told each other.
// A bucket is given to the group when it is full and the group has all buckets before it. So the ranks make their calls
// in one order whatever their graphs are.
//
// The thread of the backward alone uses a step, so it has no lock. Steps of several modules in one backward know their
// neighbours: the buckets of a step come before all buckets of the step behind it.
class Step {
public:
    // The module has the number `module` in its group.
    Step(BucketLayout &layout, Compression &compression, int64_t module, const StepTerms &terms);
    ~Step();
    Step(const Step &) = delete;
    Step &operator=(const Step &) = delete;

    const StepTerms &terms() const noexcept { return terms_; }
    // Whether gradients were added up here that no backward has reduced.
    bool has_unsynced() const noexcept { return has_unsynced_; }
    int32_t root() const noexcept { return header_.root(); }  // after finish
    Backwards::End end() const noexcept;  // as the group counts a step that ends well

    // Begins a backward that leads to these leaves. Parameters without a leaf among them count as come.
    void begin(const std::vector<Ref<LeafNode>> &reached);
    // Opens a step that is synced. All steps of the backward have begun; the neighbours of this step may be null.
    void open(Step *before, Step *after);
    // Takes the gradient of a leaf, which may be null.
    void arrive(LeafNode &leaf, Tensor gradient);
    // Waits for all buckets, and gives the leaves the means. The last buffers come from the root.
    void finish();
    // Takes part in a backward of the other ranks with zeros; finish comes next. Returns false if all ranks are out of
    // data, and then there is nothing to finish.
    bool answer();

private:
    void check_params() const;
    void reach(const std::vector<Ref<LeafNode>> &reached);
    const StepHeader &header();
    void store(size_t param, Tensor gradient);
    void store_unreached();
    double room_above(const Bucket &bucket);
    void launch_full();
    bool has_begun_all() const;
    void end_bucket(size_t index);
    void tell_order();

    BucketLayout &layout_;
    Compression &compression_;
    const WrappedModule &module_;
    const int64_t number_;
    const StepTerms terms_;
    StepHeader header_;
    Step *before_ = nullptr, *after_ = nullptr;
    std::vector<bool> uses_;         // by parameter
    std::vector<size_t> unreached_;  // parameters
    std::vector<size_t> order_;      // of those that have arrived
    std::vector<size_t> missing_;    // by bucket: parameters that have yet to arrive
    size_t begun_ = 0;               // buckets that the group has been given
    bool has_unsynced_ = false;
};

}  // namespace yoke
