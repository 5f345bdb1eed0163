// grad_scaler.h: loss scaling for f16, by the rules of PyTorch's GradScaler.
//
// Multiplying the loss by a large scale keeps small gradients from vanishing. Before a step, the gradients are
// divided by the scale. If a gradient is not finite, the step is skipped and the scale shrinks, down to kSmallest.
// After growth_interval good iterations, the scale grows.
//
// Scale and growth tracker are scalars on the device, made at the first scale(). unscale, step and update launch work
// and never wait for a value; state() waits. A single warning reports that the scale has reached the smallest value;
// on a device, the warning comes some updates later. For each optimizer an iteration goes
// ready -> unscaled -> stepped, and update() begins the next; calls out of this order raise YOKE_E_STATE.
//
// A disabled scaler has no effect: scale returns its argument, step steps, the other calls do nothing. A scaler
// serves a single thread at a time; the C API refuses a second thread.
#pragma once

#include "core/device/stream.h"
#include "core/optim/optimizer.h"

#include <limits>

namespace yoke {

struct ScalerOptions {
    double init_scale = 65536;
    double growth_factor = 2;
    double backoff_factor = 0.5;
    int64_t growth_interval = 2000;
    int64_t growth_tracker = 0;  // good iterations since the scale last changed
    bool enabled = true;
};

// Raises YOKE_E_VALUE, naming the option, if an option is out of range.
void check_options(const ScalerOptions &options);

}  // namespace yoke

struct yoke_grad_scaler final : public yoke::RefCounted {
    explicit yoke_grad_scaler(const yoke::ScalerOptions &options);
    yoke::Turns turns;

    yoke::Tensor scale(const yoke_tensor &x);
    void unscale(yoke_optimizer &optimizer);
    void step(yoke_optimizer &optimizer);
    void update();
    // Ends the iteration as update() does, with a given scale instead of a computed scale. Raises YOKE_E_VALUE unless
    // `scale` is a floating tensor of a single element without requires_grad.
    void update_to(const yoke_tensor &scale);

    // Returns the options for a scaler that continues from here: init_scale and growth_tracker are the present
    // values. Waits for the device.
    yoke::ScalerOptions state() const;
    void set_state(const yoke::ScalerOptions &state);
    // Replaces factors and interval; scale and tracker do not change. Raises YOKE_E_VALUE if a value is out of range.
    void set_rule(double growth_factor, double backoff_factor, int64_t growth_interval);
    bool is_enabled() const { return options_.enabled; }

    // The smallest normal float32: the reciprocal of a smaller one would be infinite.
    static constexpr float kSmallest = std::numeric_limits<float>::min();

private:
    enum class Stage { kReady, kUnscaled, kStepped };
    struct Iteration {
        yoke::Ref<yoke_optimizer> optimizer;
        Stage stage = Stage::kReady;
        std::vector<yoke::Tensor> found_infs;  // a scalar for each device with gradients
    };

    void make_scale(yoke::Device &device);
    void need_scale(const char *call) const;
    Iteration &iteration_of(yoke_optimizer &optimizer);
    std::vector<yoke::Tensor> unscale_gradients(const yoke_optimizer &optimizer) const;
    void watch_scale();
    void ask_for_scale();
    void look_at(float scale) const;

    yoke::ScalerOptions options_;    // with the first scale and tracker
    yoke::Tensor scale_, tracker_;   // null until the first scale()
    yoke::Tensor seen_;              // pinned: a copy of a device's scale
    yoke::Ref<yoke::Fence> copied_;  // fence behind this copy, until the copy is read
    int64_t updates_ = 0;
    mutable bool warned_ = false;
    std::vector<Iteration> iterations_;
};
