// optimizer.cpp: the core's optimizers as one class; yoke.optim gives it PyTorch's face.
#include "bindings/python/src/optimizer.h"

#include "bindings/python/src/runtime/relief.h"
#include "bindings/python/src/values/tree.h"

#include <string>

namespace yoke_python {
namespace {

// The value of one option; `call` is the kind of optimizer.
double number_option(const py::dict &options, const char *call, const char *name)
{
    return need_float(options[name], call, name);
}

int32_t bool_option(const py::dict &options, const char *call, const char *name)
{
    return need_bool(options[name], call, name);
}

yoke_sgd_options sgd_options(const py::dict &given)
{
    yoke_sgd_options options{};
    options.struct_size = sizeof options;
    options.lr = number_option(given, "SGD", "lr");
    options.momentum = number_option(given, "SGD", "momentum");
    options.weight_decay = number_option(given, "SGD", "weight_decay");
    options.nesterov = bool_option(given, "SGD", "nesterov");
    options.master_weights = bool_option(given, "SGD", "master_weights");
    return options;
}

yoke_adam_options adam_options(const py::dict &given, const char *call)
{
    yoke_adam_options options{};
    options.struct_size = sizeof options;
    options.lr = number_option(given, call, "lr");
    const py::object betas = given["betas"];
    const Py_ssize_t count = PySequence_Check(betas.ptr()) ? PySequence_Size(betas.ptr()) : 0;
    require(count >= 0);
    if (count != 2) {
        raise_type({call, "betas"}, "a pair of numbers", betas.ptr());
        throw py::error_already_set();
    }
    options.beta1 = need_float(betas[py::int_(0)], call, "betas");
    options.beta2 = need_float(betas[py::int_(1)], call, "betas");
    options.eps = number_option(given, call, "eps");
    options.weight_decay = number_option(given, call, "weight_decay");
    options.master_weights = bool_option(given, call, "master_weights");
    return options;
}

}  // namespace

Optimizer::Optimizer(const std::string &kind, const py::dict &defaults)
    : kind_(kind), is_sgd_(kind == "SGD")
{
    if (is_sgd_) {
        const yoke_sgd_options options = sgd_options(defaults);
        check(yoke_sgd_create(&options, &handle_));
        return;
    }
    const yoke_adam_options options = adam_options(defaults, kind_.c_str());
    check((kind == "AdamW" ? yoke_adamw_create : yoke_adam_create)(&options, &handle_));
}

Optimizer::~Optimizer()
{
    yoke_optimizer_release(handle_);
}

void Optimizer::add_group(const py::object &params, const py::dict &given)
{
    const TensorSequence tensors(params, kind_.c_str(), "params");
    if (is_sgd_) {
        const yoke_sgd_options options = sgd_options(given);
        return check(yoke_sgd_add_group(handle_, tensors.data(), tensors.size(), &options));
    }
    const yoke_adam_options options = adam_options(given, kind_.c_str());
    check(yoke_adam_add_group(handle_, tensors.data(), tensors.size(), &options));
}

void Optimizer::set_options(int64_t group, const py::dict &given)
{
    if (is_sgd_) {
        const yoke_sgd_options options = sgd_options(given);
        return check(yoke_sgd_set_options(handle_, group, &options));
    }
    const yoke_adam_options options = adam_options(given, kind_.c_str());
    check(yoke_adam_set_options(handle_, group, &options));
}

void Optimizer::step()
{
    yoke_status status = YOKE_OK;
    {
        const Relieved relieved;
        const ReleaseGil release;
        status = yoke_optimizer_step(handle_);
    }
    check(status);
}

void Optimizer::zero_grad(const py::object &set_to_none)
{
    check(yoke_optimizer_zero_grad(handle_, need_bool(set_to_none, "zero_grad", "set_to_none")));
}

void Optimizer::note_schedule()
{
    check(yoke_optimizer_note_schedule(handle_));
}

py::object Optimizer::state() const
{
    return object_state(handle_, yoke_optimizer_state);
}

void Optimizer::load_state(const py::object &state)
{
    load_object_state(handle_, state, yoke_optimizer_load_state);
}

void bind_optimizer(py::module_ &module)
{
    const py::arg group("group"), options("options");
    bound_class<Optimizer>(module, "_Optimizer",
                           "An optimizer of the core; see yoke.optim.Optimizer.")
        .def(py::init<const std::string &, const py::dict &>(), py::arg("kind"), options)
        .def("add_group", &Optimizer::add_group, py::arg("params"), options)
        .def("set_options", &Optimizer::set_options, group, options)
        .def("step", &Optimizer::step)
        .def("zero_grad", &Optimizer::zero_grad, py::arg("set_to_none"))
        .def("note_schedule", &Optimizer::note_schedule)
        .def("state", &Optimizer::state)
        .def("load_state", &Optimizer::load_state, py::arg("state"));
}

}  // namespace yoke_python
