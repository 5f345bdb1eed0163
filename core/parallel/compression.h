// compression.h: how a bucket that is full becomes the mean over the ranks.
//
// begin is called for each bucket in the order of a step, alike on all ranks, and returns before the others have come;
// go_on for all of them, in that order, when the last has begun; then end for each.
#pragma once

#include "core/parallel/buckets.h"
#include "core/state/tree.h"

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace yoke {

inline constexpr const char *kDdpCall = "DistributedDataParallel";  // as errors name the call

// What a compression goes on with in another process: tensors by names, and the steps so far.
struct CompressionState {
    int64_t steps = 0;
    std::map<std::string, Tensor> tensors;  // "error/<parameter>", "q/<parameter>"

    // What all ranks have alike; the rest is each rank's own.
    CompressionState common() const;
};

// {"steps": ..., "tensors": {...}}. Raises YOKE_E_VALUE and _TYPE for what is no such state.
Ref<State> state_of(const CompressionState &state);
CompressionState read_compression_state(const State &state, const char *call);

class Compression {
public:
    virtual ~Compression() = default;
    // What passes of a bucket of this dtype.
    virtual yoke_dtype passes(yoke_dtype dtype) const { return dtype; }
    virtual void begin(Bucket &bucket, size_t index, bool is_last) = 0;
    virtual void go_on(Bucket &, size_t) {}
    // The bucket's memory holds the mean when it returns.
    virtual void end(Bucket &bucket, size_t index) = 0;
    // Behind it: this view of it is given to nobody, since nobody has used the parameter.
    virtual void keep(const Bucket &, size_t /*index*/, size_t /*view*/) {}
    // A step that failed: nothing of it is under way when it returns.
    virtual void abandon() noexcept = 0;

    // Of buckets that have been laid out anew, with the names of all parameters. Between two steps, as what follows.
    virtual void lay_out(const std::vector<Bucket> &, const std::vector<std::string> &) {}
    virtual CompressionState state() const { return {}; }
    // As the option 'compression' has it, every part of it told: alike on all ranks, or their calls differ.
    virtual std::string text() const = 0;
    // Raises YOKE_E_VALUE for that of another model or kind.
    virtual void load(const CompressionState &state);
};

// "" for none, "fp16", "bf16", "powersgd:rank=4,start=10,rate=2". Raises YOKE_E_VALUE with what it does not know.
// `flags`: of the calls on 16-bit floats, as yoke_collective has it.
std::unique_ptr<Compression> make_compression(const std::string &text, Ref<Group> group,
                                              uint32_t flags = 0);

// What the host does with a bucket: it gives a work, whose end leaves the mean in the tensor; or null where it is there
// already.
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

// Works by the bucket that they belong to.
class Works {
public:
    void add(size_t bucket, Ref<Work> work);
    void wait(size_t bucket);  // for all of it
    void abandon() noexcept;

private:
    std::map<size_t, std::vector<Ref<Work>>> works_;
};

}  // namespace detail

}  // namespace yoke
