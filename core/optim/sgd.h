// sgd.h: stochastic gradient descent with momentum, Nesterov's variant and weight decay, as PyTorch defines them.
//
// With gradient g of parameter p: g += weight_decay * p; b = g at first, then b = momentum * b + g; nesterov: g += momentum
// * b, else g = b; p -= lr * g.
#pragma once

#include "core/optim/optimizer.h"

namespace yoke {

struct SgdOptions {
    double lr = 0;
    double momentum = 0;
    double weight_decay = 0;
    bool nesterov = false;
};

// Raises YOKE_E_VALUE that names the option.
void check_options(const SgdOptions &options);

class Sgd final : public ::yoke_optimizer {
public:
    explicit Sgd(const SgdOptions &defaults);

    const SgdOptions &defaults() const { return defaults_; }
    // Parameters must be leaves of a floating dtype that require grad, all on one device, each in one group only.
    void add_group(TensorList params, const SgdOptions &options);
    const SgdOptions &options(int64_t group) const { return at(group).options; }
    void set_options(int64_t group, const SgdOptions &options);

    size_t group_count() const override { return groups_.size(); }
    const std::vector<Tensor> &params(int64_t group) const override { return at(group).params; }
    void step() override;
    double lr(int64_t group) const override { return at(group).options.lr; }
    void set_lr(int64_t group, double lr) override;
    Tensor state(int64_t group, int64_t index, std::string_view name) const override;
    void set_state(int64_t group, int64_t index, std::string_view name,
                   const yoke_tensor *value) override;

private:
    struct Group {
        SgdOptions options;
        std::vector<Tensor> params, momenta;  // a momentum is null before its first step
    };
    const Group &at(int64_t group) const;
    Group &at(int64_t group) { return const_cast<Group &>(std::as_const(*this).at(group)); }
    size_t slot(int64_t group, int64_t index, std::string_view name) const;
    static void step_group(Group &group, bool first);

    SgdOptions defaults_;
    std::vector<Group> groups_;
};

}  // namespace yoke
