// training.cpp: clipping, averages of parameters and schedules.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/values/need.h"
#include "bindings/python/src/values/tree.h"

#include "yoke/optim.h"

namespace yoke_python {
namespace {

class Ema : public Bound {
public:
    Ema(const py::object &params, const py::object &decay)
    {
        const TensorSequence tensors(params, "EMA", "params");
        check(yoke_ema_create(tensors.data(), tensors.size(), need_float(decay, "EMA", "decay"),
                              &handle_));
    }
    ~Ema() { yoke_ema_release(handle_); }
    Ema(const Ema &) = delete;
    Ema &operator=(const Ema &) = delete;

    void update()
    {
        check(with_relief([&] { return yoke_ema_update(handle_); }));
    }
    void copy_to_params() { check(yoke_ema_copy_to_params(handle_)); }
    void swap() { check(yoke_ema_swap(handle_)); }
    py::object average(int64_t index)
    {
        yoke_tensor *out = nullptr;
        check(yoke_ema_average(handle_, index, &out));
        return taken(wrap_tensor(out));
    }
    py::object state() { return object_state(handle_, yoke_ema_state); }
    void load_state(const py::object &state)
    {
        load_object_state(handle_, state, yoke_ema_load_state);
    }

private:
    yoke_ema *handle_ = nullptr;
};

py::object clip_grad_norm(const py::object &params, const py::object &max_norm,
                          const py::object &norm_type)
{
    constexpr const char *call = "clip_grad_norm_";
    const TensorSequence tensors(params, call, "parameters");
    const double limit = need_float(max_norm, call, "max_norm"),
                 power = need_float(norm_type, call, "norm_type");
    yoke_tensor *norm = nullptr;
    check(with_relief(
        [&] { return yoke_clip_grad_norm(tensors.data(), tensors.size(), limit, power, &norm); }));
    return taken(wrap_tensor(norm));
}

}  // namespace

void bind_training(py::module_ &module)
{
    const py::arg step("step"), base("base"), end("end");
    bound_class<Ema>(module, "_Ema", "Average of parameters in the core; see yoke.optim.EMA.")
        .def(py::init<const py::object &, const py::object &>(), py::arg("params"),
             py::arg("decay"))
        .def("update", &Ema::update)
        .def("copy_to_params", &Ema::copy_to_params)
        .def("swap", &Ema::swap)
        .def("average", &Ema::average, py::arg("index"))
        .def("state", &Ema::state)
        .def("load_state", &Ema::load_state, py::arg("state"));
    const py::arg total("total_steps");
    module.def("_clip_grad_norm", clip_grad_norm, py::arg("params"), py::arg("max_norm"),
               py::arg("norm_type"));
    module.def("_schedule_linear", yoke_schedule_linear, py::arg("start"), end, total, step);
    module.def("_schedule_constant", yoke_schedule_constant, base, py::arg("factor"), total, step);
    module.def("_schedule_cosine", yoke_schedule_cosine, base, end, total, py::arg("warmup_steps"),
               step);
    module.def("_schedule_step", yoke_schedule_step, base, py::arg("step_size"), py::arg("gamma"),
               step);
    module.def("_schedule_one_cycle", yoke_schedule_one_cycle, py::arg("max"), total,
               py::arg("pct_start"), py::arg("div"), py::arg("final_div"), step);
}

}  // namespace yoke_python
