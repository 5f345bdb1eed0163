#include "core/optim/gradients.h"

#include "core/autograd/node.h"
#include "core/base/log.h"
#include "core/ops/ops.h"
#include "core/select/select.h"

#include <atomic>
#include <vector>

namespace yoke {

namespace {

void warn_of_nothing(const char *call)
{
    static std::atomic<bool> said;
    if (!said.exchange(true))
        log(LogLevel::kWarn,
            "%s: there is no tensor to clip; a generator such as net.parameters() gives its tensors once, so call it again for each use or keep list(net.parameters())",
            call);
}

}  // namespace

Tensor clip_grad_norm(TensorList params, double max_norm, double p)
{
    constexpr const char *call = "clip_grad_norm_";
    if (!(max_norm >= 0))
        fail(YOKE_E_VALUE, "%s: argument 'max_norm' is %g; it must be at least 0", call, max_norm);
    if (!(p > 0))
        fail(YOKE_E_VALUE, "%s: argument 'norm_type' is %g; it must be above 0 (2, 1, inf, ...)",
             call, p);
    if (params.empty()) warn_of_nothing(call);
    NoGrad no_grad;
    std::vector<Tensor> held;
    std::vector<yoke_tensor *> grads;
    bool is_f64 = false;
    for (yoke_tensor *param : params) {
        Tensor grad = grad_of(*param, call);
        if (!grad.present()) continue;
        is_f64 |= grad->dtype == YOKE_F64;
        grads.push_back(grad.get());
        held.push_back(std::move(grad));
    }
    if (grads.empty()) {
        Device &device = params.empty() ? current_device() : *params[0]->device;
        Tensor zero = make_tensor(device, YOKE_F32, {}, call);
        ops::fill_(zero, int64_t{0});
        return zero;
    }
    // A norm beyond float32's range still clips gradients within it.
    Tensor norm = ops::total_norm(grads, p);
    ops::clip_all(grads, norm, max_norm);
    return ops::cast(norm, is_f64 ? YOKE_F64 : YOKE_F32);
}

}  // namespace yoke
