// optimizer_of.h: common parts of optimizers with different options: options of each group, and defaults for new
// groups.
#pragma once

#include "core/optim/optimizer.h"

namespace yoke {

template <class Options>
class OptimizerOf : public ::yoke_optimizer {
public:
    const Options &defaults() const { return defaults_; }
    const Options &options(int64_t group) const { return options_[index_of(group)]; }

    // Adds a group of parameters with these options. Raises YOKE_E_VALUE if an option is out of range, and the errors
    // of add_params.
    void add_group(TensorList params, const Options &options)
    {
        check(options);
        options_.reserve(options_.size() + 1);
        add_params(params);
        options_.push_back(options);
    }

    void set_options(int64_t group, const Options &options)
    {
        const size_t i = index_of(group);
        check(options);
        check_masters_stay(i, options.master_weights);
        options_[i] = options;
    }

protected:
    explicit OptimizerOf(const Options &defaults) : defaults_(defaults) {}

    CommonOptions &common(size_t group) override { return options_[group]; }
    virtual void check(const Options &options) const = 0;

    std::vector<Options> options_;  // by group

private:
    Options defaults_;
};

}  // namespace yoke
