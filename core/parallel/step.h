// step.h: a backward of a module in which this rank takes part.
#pragma once

#include "core/comm/backwards.h"
#include "core/parallel/bucket_layout.h"
#include "core/parallel/step_header.h"

#include <vector>

namespace yoke {

// Backward of a module: its arrived gradients, its begun buckets, and the other ranks' numbers. The step gives a
// bucket to the group when the bucket is full and the group has all earlier buckets. So the ranks make their calls in
// the same order, whatever their graphs are.
//
// Only the thread of the backward uses a step, so the step has no lock. Steps of several modules in the same backward
// know their neighbours: all buckets of a step come before the buckets of the next step.
class Step {
public:
    // Makes a step of the module with the number `module` in its group.
    Step(BucketLayout &layout, Compression &compression, int64_t module, const StepTerms &terms);
    ~Step();
    Step(const Step &) = delete;
    Step &operator=(const Step &) = delete;

    const StepTerms &terms() const noexcept { return terms_; }
    // Returns whether gradients were added up here without a reduction.
    bool has_unsynced() const noexcept { return has_unsynced_; }
    int32_t root() const noexcept { return header_.root(); }  // after finish
    Backwards::End end() const noexcept;  // how the group counts a successful step

    // Begins a backward to these leaves. Parameters without a leaf here count as already arrived.
    void begin(const std::vector<Ref<LeafNode>> &reached);
    // Opens a synced step: sends its header, and begins buckets that are complete. All steps of the backward have
    // begun; the neighbours may be null.
    void open(Step *before, Step *after);
    // Takes the gradient of a leaf, or null, into its bucket, and begins the buckets that are now full. In a failed
    // group, the leaf keeps the gradient.
    void arrive(LeafNode &leaf, Tensor gradient);
    // Waits for all buckets, and gives the leaves the means. The last buffers come from the root.
    void finish();
    // Takes part in a backward of the other ranks with zeros; finish comes next. Returns false if all ranks are out
    // of data, and then the caller must not call finish.
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
    std::vector<size_t> order_;      // parameters with arrived gradients
    std::vector<size_t> missing_;    // by bucket: number of gradients still to arrive
    size_t begun_ = 0;               // number of buckets given to the group
    bool has_unsynced_ = false;
};

}  // namespace yoke
