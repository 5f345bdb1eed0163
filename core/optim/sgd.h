// sgd.h: stochastic gradient descent with momentum, Nesterov's variant and weight decay, as PyTorch defines them.
//
// With gradient g of parameter p:
//   g += weight_decay * p
//   b = g at first, then momentum * b + g
//   g = nesterov ? g + momentum * b : b
//   p -= lr * g
#pragma once

#include "core/optim/optimizer_of.h"

namespace yoke {

struct SgdOptions : ::yoke_optimizer::CommonOptions {
    double momentum = 0;
    bool nesterov = false;
};

class Sgd final : public OptimizerOf<SgdOptions> {
public:
    // Sets the options of later groups. Raises YOKE_E_VALUE, naming the option, if an option is out of range.
    explicit Sgd(const SgdOptions &defaults);

    const char *kind() const noexcept override { return "SGD"; }
    std::span<const char *const> state_names() const noexcept override;

protected:
    unsigned needed_states(size_t group) const override { return options_[group].momentum != 0; }
    void launch(const Batch &batch) override;

private:
    void check(const SgdOptions &options) const override;
};

}  // namespace yoke
