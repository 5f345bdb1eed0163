// optimizer.h: the core's optimizers as Python sees them. Options come as a dict with every option of the kind.
#pragma once

#include "bindings/python/src/runtime/bind.h"

#include <string>

#include "yoke/optim.h"

namespace yoke_python {

class Optimizer : public Bound {
public:
    Optimizer(const std::string &kind, const py::dict &defaults);  // "SGD", "Adam" or "AdamW"
    ~Optimizer();
    Optimizer(const Optimizer &) = delete;
    Optimizer &operator=(const Optimizer &) = delete;

    yoke_optimizer *handle() const { return handle_; }
    void add_group(const py::object &params, const py::dict &options);
    void set_options(int64_t group, const py::dict &options);
    void step();
    void zero_grad(const py::object &set_to_none);
    void note_schedule();
    py::object state() const;
    void load_state(const py::object &state);

private:
    std::string kind_;
    bool is_sgd_;
    yoke_optimizer *handle_ = nullptr;
};

}  // namespace yoke_python
