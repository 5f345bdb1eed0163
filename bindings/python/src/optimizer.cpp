// optimizer.cpp: the core's optimizers as one class; yoke.optim gives it PyTorch's face.
#include "bind.h"

#include "yoke/optim.h"

namespace yoke_python {
namespace {

yoke_sgd_options sgd_options(const py::object &lr, const py::object &momentum,
                             const py::object &weight_decay, const py::object &nesterov)
{
    yoke_sgd_options options{};
    options.struct_size = sizeof options;
    options.lr = need_float(lr, "SGD", "lr");
    options.momentum = need_float(momentum, "SGD", "momentum");
    options.weight_decay = need_float(weight_decay, "SGD", "weight_decay");
    options.nesterov = need_bool(nesterov, "SGD", "nesterov");
    return options;
}

class Sgd {
public:
    Sgd(const py::object &lr, const py::object &momentum, const py::object &weight_decay,
        const py::object &nesterov)
    {
        const yoke_sgd_options options = sgd_options(lr, momentum, weight_decay, nesterov);
        check(yoke_sgd_create(&options, &handle_));
    }
    ~Sgd() { yoke_optimizer_release(handle_); }
    Sgd(const Sgd &) = delete;
    Sgd &operator=(const Sgd &) = delete;

    void add_group(const py::object &params, const py::object &lr, const py::object &momentum,
                   const py::object &weight_decay, const py::object &nesterov)
    {
        const yoke_sgd_options options = sgd_options(lr, momentum, weight_decay, nesterov);
        const TensorSequence tensors(params, "SGD", "params");
        check(yoke_sgd_add_group(handle_, tensors.data(), tensors.size(), &options));
    }

    void set_options(int64_t group, const py::object &lr, const py::object &momentum,
                     const py::object &weight_decay, const py::object &nesterov)
    {
        const yoke_sgd_options options = sgd_options(lr, momentum, weight_decay, nesterov);
        check(yoke_sgd_set_options(handle_, group, &options));
    }

    py::tuple get_options(int64_t group)
    {
        yoke_sgd_options options{};
        options.struct_size = sizeof options;
        check(yoke_sgd_get_options(handle_, group, &options));
        return py::make_tuple(options.lr, options.momentum, options.weight_decay,
                              options.nesterov != 0);
    }

    void step()
    {
        // No second try after OOM: what a step has already changed would be changed again.
        yoke_status status = YOKE_OK;
        {
            const ReleaseGil release;
            status = yoke_optimizer_step(handle_);
        }
        check(status);
    }

    void zero_grad(const py::object &set_to_none)
    {
        check(
            yoke_optimizer_zero_grad(handle_, need_bool(set_to_none, "zero_grad", "set_to_none")));
    }

    py::object get_state(int64_t group, int64_t index, const char *name)
    {
        yoke_tensor *out = nullptr;
        check(yoke_optimizer_get_state(handle_, group, index, name, &out));
        return out ? taken(wrap_tensor(out)) : py::none();
    }

    void set_state(int64_t group, int64_t index, const char *name, const py::object &value)
    {
        yoke_tensor *tensor =
            value.is_none() ? nullptr : need_tensor(value, "load_state_dict", "state");
        check(yoke_optimizer_set_state(handle_, group, index, name, tensor));
    }

private:
    yoke_optimizer *handle_ = nullptr;
};

}  // namespace

void bind_optimizer(py::module_ &module)
{
    const py::arg lr("lr"), momentum("momentum"), weight_decay("weight_decay"),
        nesterov("nesterov");
    const py::arg group("group"), index("index"), name("name");
    py::class_<Sgd>(module, "_Sgd", "The core's SGD; see yoke.optim.SGD.")
        .def(py::init<const py::object &, const py::object &, const py::object &,
                      const py::object &>(),
             lr, momentum, weight_decay, nesterov)
        .def("add_group", &Sgd::add_group, py::arg("params"), lr, momentum, weight_decay, nesterov)
        .def("get_options", &Sgd::get_options, group)
        .def("set_options", &Sgd::set_options, group, lr, momentum, weight_decay, nesterov)
        .def("step", &Sgd::step)
        .def("zero_grad", &Sgd::zero_grad, py::arg("set_to_none"))
        .def("get_state", &Sgd::get_state, group, index, name)
        .def("set_state", &Sgd::set_state, group, index, name, py::arg("value"));
    module.def("_schedule_linear", yoke_schedule_linear, py::arg("start"), py::arg("end"),
               py::arg("total_steps"), py::arg("step"));
}

}  // namespace yoke_python
