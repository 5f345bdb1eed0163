// autocast.h: ops choose their dtype by the autocast class in their line of ops.def.
//
// A region says whether to cast, and to which low dtype. While a region is in force in a thread, run() casts the
// arguments of each op before its shape rule sees them. Casts are recorded like any op, so the tape keeps the
// arguments that the op really read. Inside an op of a class, and in backward, no region is in force: a composed op
// casts once, at its entry.
//
// Casts of weights are kept until the outermost region ends. Weights are f32 leaves that require grad and are no
// views. A weight changed since is cast anew; writes by address, without Yoke's knowledge, are not noticed. Casts
// made while a graph is captured are kept apart, only for this capture. Replays cast again, and this memory has no
// values before the first replay.
//
// Several threads may have the same region in force, or regions nested in it: they share the casts.
#pragma once

#include "core/base/refcount.h"
#include "core/base/thread_state.h"
#include "core/device/device.h"
#include "core/ops/op_def.h"

namespace yoke {

class CastCache;

class Autocast : public RefCounted {
public:
    // Makes a region nested in the region in force; both share the casts. `dtype` is f16, bf16 or none: the device's
    // default.
    static Ref<Autocast> make(bool enabled, yoke_dtype dtype, bool cache_enabled);

    bool enabled() const { return enabled_; }
    yoke_dtype dtype_on(const Device &device) const;
    // Returns an argument cast to the low dtype. The cast of a weight comes from the cache, if the region allows the
    // cache.
    Tensor low(const yoke_tensor &x, yoke_dtype dtype) const;
    // Releases the casts of an ended capture, by the number of its graph.
    void forget_captured(uint64_t graph) const noexcept;

private:
    Autocast(bool enabled, yoke_dtype dtype, bool cache_enabled, Ref<CastCache> cache);
    ~Autocast() override;

    const bool enabled_, cache_enabled_;
    const yoke_dtype dtype_;
    const Ref<CastCache> cache_;
};

// Returns the half dtype that suits a device: f16 on cuda, bf16 elsewhere.
yoke_dtype default_autocast_dtype(const Device &device);

// Puts a region (or none) in force in the calling thread, which keeps the region alive meanwhile. Returns the region
// before; this region lives on only if another owner holds it.
Autocast *set_autocast(Autocast *region);
inline Autocast *current_autocast() noexcept
{
    const ThreadState *state = known_thread_state();
    return state ? state->autocast : nullptr;
}
// Releases the casts of the calling thread's ended capture of a graph.
void forget_captured_casts(uint64_t graph) noexcept;

// Returns whether a call of this op must be cast; every call of every op asks.
inline bool autocasts(const OpDef &op) noexcept
{
    const Autocast *region = current_autocast();
    return region && region->enabled() && op.autocast != AutocastClass::kNone;
}
// Runs a call under autocast: casts its arguments by the op's class, then runs the op without a region. Raises
// YOKE_E_UNSUPPORTED for an op of the class kError.
void run_autocast(int32_t number, yoke_arg *args, Tensor *results);

namespace detail {
// Releases a region that stays open at the end of a thread or of a relief function. Serves an entry of
// core/base/lent.h.
void drop_autocast(Autocast *region) noexcept;
}  // namespace detail

}  // namespace yoke
