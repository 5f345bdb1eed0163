// compression.h: the way from a full bucket to the mean over the ranks.
//
// A step calls begin for each bucket in its order, alike on all ranks; begin does not wait for the other ranks. After
// the last begin, the step calls go_on for all buckets in the same order, and then end for each.
#pragma once

#include "core/parallel/buckets.h"
#include "core/state/tree.h"

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace yoke {

inline constexpr const char *kDdpCall = "DistributedDataParallel";  // name of the call in errors

// State with which a compression goes on in another process: tensors by name, and the number of steps.
struct CompressionState {
    int64_t steps = 0;
    std::map<std::string, Tensor> tensors;  // "error/<parameter>", "q/<parameter>"

    // Returns the part alike on all ranks, without the tensors "error/…", which differ by rank.
    CompressionState common() const;
};

// Returns the state as a tree: {"steps": ..., "tensors": {...}}. read_compression_state reads such a tree, and raises
// YOKE_E_VALUE and _TYPE for another tree.
Ref<State> state_of(const CompressionState &state);
CompressionState read_compression_state(const State &state, const char *call);

class Compression {
public:
    virtual ~Compression() = default;
    // Returns the dtype in which a bucket of `dtype` is sent.
    virtual yoke_dtype passes(yoke_dtype dtype) const { return dtype; }
    virtual void begin(Bucket &bucket, size_t index, bool is_last) = 0;
    virtual void go_on(Bucket &, size_t) {}
    // Waits until the bucket's memory holds the mean over the ranks.
    virtual void end(Bucket &bucket, size_t index) = 0;
    // Notes after end that no leaf gets this view of the bucket, because no rank has used the parameter.
    virtual void keep(const Bucket &, size_t /*index*/, size_t /*view*/) {}
    // Ends a failed step. Waits until no work of the step is under way.
    virtual void abandon() noexcept = 0;

    // Takes newly laid out buckets, and the names of all parameters. Is called between two steps, like the functions
    // below.
    virtual void lay_out(const std::vector<Bucket> &, const std::vector<std::string> &) {}
    virtual CompressionState state() const { return {}; }
    // Returns the option 'compression' with every part. The text must be alike on all ranks, or their calls differ.
    virtual std::string text() const = 0;
    // Takes the state of an earlier process. Raises YOKE_E_VALUE for the state of another model or compression.
    virtual void load(const CompressionState &state);
};

// Makes a compression from "" (no compression), "fp16", "bf16" or "powersgd:rank=4,start=10,rate=2". Raises
// YOKE_E_VALUE with an unknown part. `flags` are for calls on 16-bit floats, as in yoke_collective.
std::unique_ptr<Compression> make_compression(const std::string &text, Ref<Group> group,
                                              uint32_t flags = 0);

// Full bucket, given to a hook of the host program. The hook returns a work that leaves the mean in the tensor, or
// null if the mean is there already.
struct FullBucket {
    const Tensor &memory;
    size_t index;
    bool is_last;
    Group &group;
};
using BucketHook = std::function<Ref<Work>(const FullBucket &)>;
std::unique_ptr<Compression> make_hook(BucketHook hook, Ref<Group> group);

namespace detail {

Collective mean_of(const Tensor &tensor, uint32_t flags = 0);

// Works by bucket.
class Works {
public:
    void add(size_t bucket, Ref<Work> work);
    void wait(size_t bucket);  // waits for all works of the bucket
    void abandon() noexcept;

private:
    std::map<size_t, std::vector<Ref<Work>>> works_;
};

}  // namespace detail

}  // namespace yoke
