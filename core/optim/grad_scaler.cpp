#include "core/optim/grad_scaler.h"

#include "core/autograd/node.h"
#include "core/base/log.h"
#include "core/ops/graph.h"
#include "core/ops/ops.h"

#include <algorithm>
#include <cmath>

using namespace yoke;

namespace yoke {

namespace {

void check_rule(const ScalerOptions &o);

bool is_scale(double given)
{
    const auto scale = static_cast<float>(given);
    return scale >= yoke_grad_scaler::kSmallest && !std::isinf(scale);
}

}  // namespace

void check_options(const ScalerOptions &o)
{
    constexpr const char *call = "GradScaler";
    // The scale is a float32 on the device.
    if (!is_scale(o.init_scale))
        fail(YOKE_E_VALUE,
             "%s: argument 'init_scale' is %g; it must be at least %g and finite as a float32",
             call, o.init_scale, static_cast<double>(yoke_grad_scaler::kSmallest));
    check_rule(o);
}

namespace {

void check_rule(const ScalerOptions &o)
{
    constexpr const char *call = "GradScaler";
    if (!(o.growth_factor > 1) || std::isinf(o.growth_factor))
        fail(YOKE_E_VALUE, "%s: argument 'growth_factor' is %g; it must be finite and above 1",
             call, o.growth_factor);
    if (!(o.backoff_factor > 0 && o.backoff_factor < 1))
        fail(YOKE_E_VALUE, "%s: argument 'backoff_factor' is %g; it must be between 0 and 1", call,
             o.backoff_factor);
    if (o.growth_interval < 1)
        fail(YOKE_E_VALUE, "%s: argument 'growth_interval' is %lld; it must be at least 1", call,
             static_cast<long long>(o.growth_interval));
    if (o.growth_tracker < 0 || o.growth_tracker > INT32_MAX)
        fail(YOKE_E_VALUE,
             "%s: the growth tracker is %lld; it must be at least 0 and fit in 32 bits", call,
             static_cast<long long>(o.growth_tracker));
}

// Returns x itself if x is on the device, else a copy of x there.
Tensor on_device(const Tensor &x, Device &device)
{
    if (x->device == &device) return x;
    Tensor copy = make_tensor(device, x->dtype, x->shape(), "GradScaler");
    ops::copy_(copy, x);
    return copy;
}

template <class T>
T read_item(const yoke_tensor &x)
{
    T value{};
    copy_to_host(x, &value, sizeof value, "GradScaler.get_scale");
    return value;
}

void need_gradients(const std::vector<Tensor> &found_infs, const yoke_optimizer &optimizer,
                    const char *call)
{
    if (found_infs.empty())
        fail(
            YOKE_E_STATE,
            "%s: no parameter of this %s has a gradient; call scaler.scale(loss) and backward() first",
            call, optimizer.kind());
}

// The gradients of an optimizer on one device.
struct OnDevice {
    Device *device;
    std::vector<yoke_tensor *> grads;
};

}  // namespace

}  // namespace yoke

yoke_grad_scaler::yoke_grad_scaler(const ScalerOptions &options) : options_(options)
{
    check_options(options);
}

// ---- The scale ---------------------------------------------------------------------------------------

void yoke_grad_scaler::make_scale(Device &device)
{
    NoGrad no_grad;
    const Uncaptured at_once;  // in a graph each replay would start anew
    Tensor scale = make_tensor(device, YOKE_F32, {}, "GradScaler");
    Tensor tracker = make_tensor(device, YOKE_I32, {}, "GradScaler");
    ops::fill_(scale, options_.init_scale);
    ops::fill_(tracker, options_.growth_tracker);
    scale_ = std::move(scale);
    tracker_ = std::move(tracker);
}

void yoke_grad_scaler::need_scale(const char *call) const
{
    if (!scale_.present())
        fail(YOKE_E_STATE,
             "%s: no loss was scaled yet; call scaler.scale(loss) and backward() first", call);
}

Tensor yoke_grad_scaler::scale(const yoke_tensor &x)
{
    if (!options_.enabled) return Tensor::share(const_cast<yoke_tensor *>(&x));
    if (!is_floating(x.dtype))
        fail(YOKE_E_TYPE, "scale: the loss is %s; only a loss of a floating dtype can be scaled",
             describe(x).c_str());
    if (!scale_.present()) make_scale(*x.device);
    return ops::mul(x, on_device(scale_, *x.device));
}

ScalerOptions yoke_grad_scaler::state() const
{
    ScalerOptions now = options_;
    if (scale_.present()) {
        const auto scale = read_item<float>(scale_);
        look_at(scale);
        now.init_scale = static_cast<double>(scale);
        now.growth_tracker = read_item<int32_t>(tracker_);
    }
    return now;
}

void yoke_grad_scaler::set_rule(double growth_factor, double backoff_factor,
                                int64_t growth_interval)
{
    ScalerOptions next = options_;
    next.growth_factor = growth_factor;
    next.backoff_factor = backoff_factor;
    next.growth_interval = growth_interval;
    check_rule(next);
    options_ = next;
}

void yoke_grad_scaler::set_state(const ScalerOptions &state)
{
    if (!options_.enabled) return;
    check_rule(state);
    // An old state, from before the smallest scale existed, may hold 0; the code raises 0 to the smallest scale.
    const auto scale = static_cast<float>(state.init_scale);
    if (!(scale >= 0) || std::isinf(scale))
        fail(YOKE_E_VALUE,
             "load_state_dict: the scale is %g; it must be 0 or more and finite as a float32",
             state.init_scale);
    options_ = state;
    options_.init_scale = static_cast<double>(std::max(scale, kSmallest));
    options_.enabled = true;
    iterations_.clear();
    warned_ = false;
    look_at(scale);
    if (!scale_.present()) return;
    NoGrad no_grad;
    ops::fill_(scale_, options_.init_scale);
    ops::fill_(tracker_, options_.growth_tracker);
}

// ---- Smallest scale ---------------------------------------------------------------------------------

void yoke_grad_scaler::look_at(float scale) const
{
    if (warned_ || !(scale <= kSmallest)) return;
    warned_ = true;
    log(LogLevel::kWarn,
        "GradScaler: overflows have reduced the scale to %g, the smallest scale; gradients overflow at every scale, so look for infinity or NaN in the model, the data or the learning rate",
        static_cast<double>(kSmallest));
}

// Warns once if the scale has reached the smallest value. On a device, reads a copy of the scale once the copy has
// arrived, and requests a copy every 16 updates. Does nothing while a graph is captured.
void yoke_grad_scaler::watch_scale()
{
    constexpr int64_t kUpdates = 16;  // a scale halves 142 times on its way
    if (warned_ || Graph::of_thread()) return;
    if (scale_->device->host) return look_at(read_item<float>(scale_));
    if (copied_.present() && is_reached(*copied_)) {
        copied_ = nullptr;
        look_at(*reinterpret_cast<const float *>(seen_->data));
    }
    if (++updates_ % kUpdates == 0 && !copied_.present()) ask_for_scale();
}

void yoke_grad_scaler::ask_for_scale()
{
    Device &device = *scale_->device;
    if (!device.backend->host_alloc) return;  // a copy would be waited for
    if (!seen_.present()) seen_ = make_pinned(device, YOKE_F32, {}, "GradScaler");
    transfer(*seen_, *scale_, true);
    copied_ = fence_behind(device, memory_lane(device));
}

// ---- An iteration ------------------------------------------------------------------------------------

yoke_grad_scaler::Iteration &yoke_grad_scaler::iteration_of(yoke_optimizer &optimizer)
{
    for (Iteration &each : iterations_)
        if (each.optimizer.get() == &optimizer) return each;
    iterations_.push_back({Ref<yoke_optimizer>::share(&optimizer), Stage::kReady, {}});
    return iterations_.back();
}

// Divides the gradients by the scale, with a launch for each device. Returns a scalar for each device, not 0 if a
// gradient there is not finite. If a gradient is refused, or memory runs out, no gradient has changed.
std::vector<Tensor> yoke_grad_scaler::unscale_gradients(const yoke_optimizer &optimizer) const
{
    NoGrad no_grad;
    std::vector<Tensor> held;
    std::vector<OnDevice> parts;
    for (size_t group = 0; group < optimizer.group_count(); ++group)
        for (const Tensor &param : optimizer.params(static_cast<int64_t>(group))) {
            Tensor grad = grad_of(param, "unscale_");
            if (!grad.present()) continue;
            if (grad->dtype == YOKE_F16)
                fail(
                    YOKE_E_TYPE,
                    "unscale_: the gradient of a parameter, %s, is float16, which cannot hold unscaled gradients; keep the parameters in float32 and let autocast choose float16",
                    describe(*grad).c_str());
            const auto part = std::find_if(parts.begin(), parts.end(), [&](const OnDevice &each) {
                return each.device == grad->device;
            });
            (part == parts.end() ? parts.emplace_back(OnDevice{grad->device, {}}) : *part)
                .grads.push_back(grad.get());
            held.push_back(std::move(grad));
        }
    std::vector<Tensor> found_infs, scales;
    for (const OnDevice &part : parts) {
        found_infs.push_back(make_tensor(*part.device, YOKE_F32, {}, "GradScaler.unscale_"));
        scales.push_back(on_device(scale_, *part.device));
    }
    for (size_t i = 0; i < parts.size(); ++i)
        ops::unscale(parts[i].grads, found_infs[i], scales[i]);
    return found_infs;
}

void yoke_grad_scaler::unscale(yoke_optimizer &optimizer)
{
    constexpr const char *call = "unscale_";
    if (!options_.enabled) return;
    need_scale(call);
    Iteration &iteration = iteration_of(optimizer);
    if (iteration.stage == Stage::kUnscaled)
        fail(YOKE_E_STATE,
             "%s: a second call on this %s since the last update(); call once in an iteration",
             call, optimizer.kind());
    if (iteration.stage == Stage::kStepped)
        fail(
            YOKE_E_STATE,
            "%s: called after step() of this %s; call before step(), and call update() at the end of each iteration",
            call, optimizer.kind());
    std::vector<Tensor> found = unscale_gradients(optimizer);
    need_gradients(found, optimizer, call);
    iteration.found_infs = std::move(found);
    iteration.stage = Stage::kUnscaled;
}

void yoke_grad_scaler::step(yoke_optimizer &optimizer)
{
    constexpr const char *call = "step";
    if (!options_.enabled) return optimizer.step();
    need_scale(call);
    Iteration &iteration = iteration_of(optimizer);
    if (iteration.stage == Stage::kStepped)
        fail(
            YOKE_E_STATE,
            "%s: a second call on this %s since the last update(); call update() at the end of each iteration",
            call, optimizer.kind());
    std::vector<Tensor> found =
        iteration.stage == Stage::kReady ? unscale_gradients(optimizer) : iteration.found_infs;
    need_gradients(found, optimizer, call);
    // The gradients stay unscaled, even if the step fails.
    iteration.found_infs = found;
    iteration.stage = Stage::kUnscaled;
    if (found.size() > 1) {  // an overflow on any device stops all
        NoGrad no_grad;
        Tensor sum = ops::clone(found[0]);
        for (size_t i = 1; i < found.size(); ++i) ops::add_(sum, on_device(found[i], *sum->device));
        for (Tensor &each : found) each = on_device(sum, *each->device);
    }
    optimizer.step(found);
    iteration.stage = Stage::kStepped;
}

void yoke_grad_scaler::update()
{
    constexpr const char *call = "update";
    if (!options_.enabled) return;
    need_scale(call);
    NoGrad no_grad;
    std::vector<Tensor> held;
    std::vector<yoke_tensor *> found;
    for (const Iteration &each : iterations_)
        for (const Tensor &one : each.found_infs)
            found.push_back(held.emplace_back(on_device(one, *scale_->device)).get());
    if (found.empty())
        fail(YOKE_E_STATE,
             "%s: no gradients were checked since the last update(); call step(optimizer) first",
             call);
    ops::update_scale(scale_, tracker_, found, options_.growth_factor, options_.backoff_factor,
                      options_.growth_interval, static_cast<double>(kSmallest));
    iterations_.clear();
    watch_scale();
}

void yoke_grad_scaler::update_to(const yoke_tensor &scale)
{
    if (!options_.enabled) return;
    need_scale("update");
    if (scale.numel != 1 || !is_floating(scale.dtype) || scale.requires_grad())
        fail(
            YOKE_E_VALUE,
            "update: argument 'new_scale' is %s; it must be a number, or a floating tensor of one element that does not require grad",
            describe(scale).c_str());
    NoGrad no_grad;
    if (scale.device->host && !Graph::of_thread()) {  // another device would be waited for
        const auto value = read_item<float>(ops::cast(scale, YOKE_F32));
        if (!is_scale(static_cast<double>(value)))
            fail(
                YOKE_E_VALUE,
                "update: argument 'new_scale' is %g; it must be at least %g and finite as a float32",
                static_cast<double>(value), static_cast<double>(kSmallest));
    }
    const int64_t strides[1] = {0};
    ops::copy_(scale_, make_view(scale, {}, strides, 0));
    ops::clamp_(scale_, static_cast<double>(kSmallest));
    iterations_.clear();
}
