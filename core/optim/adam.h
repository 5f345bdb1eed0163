// adam.h: Adam and AdamW as PyTorch defines them.
//
// With gradient g of parameter p, in step t:
//   m += (1 - beta1) * (g - m)
//   v = beta2 * v + (1 - beta2) * g²
//   p -= lr / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + eps)
// Weight decay: Adam adds weight_decay * p to g, AdamW multiplies p by 1 - lr * weight_decay first.
#pragma once

#include "core/optim/optimizer_of.h"

namespace yoke {

struct AdamOptions : ::yoke_optimizer::CommonOptions {
    double beta1 = 0;
    double beta2 = 0;
    double eps = 0;
};

class Adam final : public OptimizerOf<AdamOptions> {
public:
    // Sets the options of later groups. Raises YOKE_E_VALUE, naming the option, if an option is out of range.
    Adam(const AdamOptions &defaults, bool decoupled);

    const char *kind() const noexcept override { return decoupled_ ? "AdamW" : "Adam"; }
    std::span<const char *const> state_names() const noexcept override;

protected:
    unsigned needed_states(size_t) const override { return 7u; }
    void launch(const Batch &batch) override;

private:
    void check(const AdamOptions &options) const override;

    const bool decoupled_;  // AdamW
};

}  // namespace yoke
