// autocast.h: ops choose the dtype they run in, by the class that their line in ops.def names.
//
// A region says whether, and with which low dtype. While one is in force in a thread, run() casts the arguments of each
// op before its shape rule sees them: casts are recorded like any op, so the tape keeps what the op really read. Inside
// an op of a class, and on the way back, no region is in force: what is made of other ops casts once, at its door.
//
// Casts of weights are kept: f32 leaves that require grad and are no views, until the outermost region ends. A weight
// that was changed since is cast anew; what is written behind Yoke's back, by address, is not seen. What is cast while
// a graph is captured is kept apart, for that capture alone: replays cast again, and until the first of them nothing is
// in that memory.
//
// Several threads may have one region in force, or regions nested in one: they share the casts.
#pragma once

#include "core/base/refcount.h"
#include "core/base/thread_state.h"
#include "core/device/device.h"
#include "core/ops/op_def.h"

namespace yoke {

class CastCache;

class Autocast : public RefCounted {
public:
    // Nested in the region in force, whose casts it shares. `dtype` is f16, bf16 or none: what suits the device.
    static Ref<Autocast> make(bool enabled, yoke_dtype dtype, bool cache_enabled);

    bool enabled() const { return enabled_; }
    yoke_dtype dtype_on(const Device &device) const;
    // The cast of an argument to the low dtype, from the cache where that may be.
    Tensor low(const yoke_tensor &x, yoke_dtype dtype) const;
    // Lets go of the casts of a capture that is over, by the number of its graph.
    void forget_captured(uint64_t graph) const noexcept;

private:
    Autocast(bool enabled, yoke_dtype dtype, bool cache_enabled, Ref<CastCache> cache);
    ~Autocast() override;

    const bool enabled_, cache_enabled_;
    const yoke_dtype dtype_;
    const Ref<CastCache> cache_;
};

// The half that suits a device: f16 on cuda, bf16 elsewhere.
yoke_dtype default_autocast_dtype(const Device &device);

// Puts a region (or none) in force in the calling thread, which keeps it alive meanwhile; returns the one before, which
// lives on only if someone else holds it.
Autocast *set_autocast(Autocast *region);
inline Autocast *current_autocast() noexcept
{
    const ThreadState *state = known_thread_state();
    return state ? state->autocast : nullptr;
}
// The calling thread's capture of that graph is over: its casts serve nobody any more.
void forget_captured_casts(uint64_t graph) noexcept;

// Whether a call of this op is to be cast; every call of every op asks.
inline bool autocasts(const OpDef &op) noexcept
{
    const Autocast *region = current_autocast();
    return region && region->enabled() && op.autocast != AutocastClass::kNone;
}
// Runs such a call: casts its arguments, then goes on without a region.
void run_autocast(int32_t number, yoke_arg *args, Tensor *results);

namespace detail {
// Of core/base/lent.h.
void drop_autocast(Autocast *region) noexcept;
}  // namespace detail

}  // namespace yoke
