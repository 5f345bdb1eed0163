// adam.h: Adam and AdamW as PyTorch defines them.
//
// With gradient g of parameter p, in step t:
//   m += (1 - beta1) * (g - m)
//   v = beta2 * v + (1 - beta2) * g²
//   p -= lr / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + eps)
// Weight decay: Adam adds weight_decay * p to g, AdamW multiplies p by 1 - lr * weight_decay first.
#pragma once

#include "core/optim/optimizer.h"

namespace yoke {

struct AdamOptions : ::yoke_optimizer::CommonOptions {
    double beta1 = 0;
    double beta2 = 0;
    double eps = 0;
};

class Adam final : public ::yoke_optimizer {
public:
    using Options = AdamOptions;
    // Raises YOKE_E_VALUE that names the option; so do the others that take options.
    Adam(const AdamOptions &defaults, bool decoupled);

    const char *kind() const noexcept override { return decoupled_ ? "AdamW" : "Adam"; }
    std::span<const char *const> state_names() const noexcept override;

    const AdamOptions &defaults() const { return defaults_; }
    void add_group(TensorList params, const AdamOptions &options);
    const AdamOptions &options(int64_t group) const { return options_[index_of(group)]; }
    void set_options(int64_t group, const AdamOptions &options);

protected:
    CommonOptions &common(size_t group) override { return options_[group]; }
    unsigned needed_states(size_t) const override { return 7u; }
    void launch(const Batch &batch) override;

private:
    void check(const AdamOptions &options) const;

    const bool decoupled_;  // AdamW
    AdamOptions defaults_;
    std::vector<AdamOptions> options_;  // of each group
};

}  // namespace yoke
