// sgd.h: stochastic gradient descent with momentum, Nesterov's variant and weight decay, as PyTorch defines them.
//
// With gradient g of parameter p:
//   g += weight_decay * p
//   b = g at first, then momentum * b + g
//   g = nesterov ? g + momentum * b : b
//   p -= lr * g
#pragma once

#include "core/optim/optimizer.h"

namespace yoke {

struct SgdOptions : ::yoke_optimizer::CommonOptions {
    double momentum = 0;
    bool nesterov = false;
};

class Sgd final : public ::yoke_optimizer {
public:
    using Options = SgdOptions;
    // Raises YOKE_E_VALUE that names the option; so do the others that take options.
    explicit Sgd(const SgdOptions &defaults);

    const char *kind() const noexcept override { return "SGD"; }
    std::span<const char *const> state_names() const noexcept override;

    const SgdOptions &defaults() const { return defaults_; }
    void add_group(TensorList params, const SgdOptions &options);
    const SgdOptions &options(int64_t group) const { return options_[index_of(group)]; }
    void set_options(int64_t group, const SgdOptions &options);

protected:
    CommonOptions &common(size_t group) override { return options_[group]; }
    unsigned needed_states(size_t group) const override { return options_[group].momentum != 0; }
    void launch(const Batch &batch) override;

private:
    static void check(const SgdOptions &options);

    SgdOptions defaults_;
    std::vector<SgdOptions> options_;  // of each group
};

}  // namespace yoke
