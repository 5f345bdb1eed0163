// training.cpp: loss scaling, clipping, averages of parameters and schedules.
#include "bindings/python/src/optimizer.h"
#include "bindings/python/src/runtime/relief.h"
#include "bindings/python/src/values/tree.h"

#include "yoke/amp.h"

namespace yoke_python {
namespace {

using ScalerState = yoke_grad_scaler_options;

// (scale, growth_factor, backoff_factor, growth_interval, growth_tracker); `scale` is what the caller calls the first.
ScalerState scaler_state(const py::tuple &values, const char *call, const char *scale)
{
    ScalerState state{};
    state.struct_size = sizeof state;
    state.scale = need_float(values[0], call, scale);
    state.growth_factor = need_float(values[1], call, "growth_factor");
    state.backoff_factor = need_float(values[2], call, "backoff_factor");
    state.growth_interval = need_int(values[3], call, "growth_interval");
    state.growth_tracker = need_int(values[4], call, "_growth_tracker");
    return state;
}

class Scaler : public Bound {
public:
    explicit Scaler(const py::tuple &values)
    {
        const ScalerState state = scaler_state(values, "GradScaler", "init_scale");
        check(yoke_grad_scaler_create(&state, &handle_));
    }
    ~Scaler() { yoke_grad_scaler_release(handle_); }
    Scaler(const Scaler &) = delete;
    Scaler &operator=(const Scaler &) = delete;

    py::object scale(const py::object &x)
    {
        yoke_tensor *out = nullptr;
        check(yoke_grad_scaler_scale(handle_, need_tensor(x, "scale", "outputs"), &out));
        return taken(wrap_tensor(out));
    }
    void unscale(const Optimizer &optimizer)
    {
        run([&] { return yoke_grad_scaler_unscale(handle_, optimizer.handle()); });
    }
    void step(const Optimizer &optimizer)
    {
        run([&] { return yoke_grad_scaler_step(handle_, optimizer.handle()); });
    }
    void update() { check(yoke_grad_scaler_update(handle_)); }
    void update_to(const py::object &scale)
    {
        check(yoke_grad_scaler_update_to(handle_, need_tensor(scale, "update", "new_scale")));
    }
    py::tuple get_state()
    {
        ScalerState now{};
        now.struct_size = sizeof now;
        check(yoke_grad_scaler_get_state(handle_, &now));
        return py::make_tuple(now.scale, now.growth_factor, now.backoff_factor, now.growth_interval,
                              now.growth_tracker);
    }
    py::object state() { return object_state(handle_, yoke_grad_scaler_state); }
    void load_state(const py::object &state)
    {
        load_object_state(handle_, state, yoke_grad_scaler_load_state);
    }
    void set_rule(const py::object &growth, const py::object &backoff, const py::object &interval)
    {
        check(yoke_grad_scaler_set_rule(handle_, need_float(growth, "GradScaler", "growth_factor"),
                                        need_float(backoff, "GradScaler", "backoff_factor"),
                                        need_int(interval, "GradScaler", "growth_interval")));
    }

private:
    // A second try would change again what the first one has changed, so relief comes amid the call.
    template <class Call>
    static void run(const Call &call)
    {
        yoke_status status = YOKE_OK;
        {
            const Relieved relieved;
            const ReleaseGil release;
            status = call();
        }
        check(status);
    }

    yoke_grad_scaler *handle_ = nullptr;
};

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
    const py::arg state("state"), optimizer("optimizer"), step("step"), base("base"), end("end");
    bound_class<Scaler>(module, "_GradScaler", "The core's loss scaler; see yoke.GradScaler.")
        .def(py::init<const py::tuple &>(), state)
        .def("scale", &Scaler::scale, py::arg("x"))
        .def("unscale", &Scaler::unscale, optimizer)
        .def("step", &Scaler::step, optimizer)
        .def("update", &Scaler::update)
        .def("update_to", &Scaler::update_to, py::arg("scale"))
        .def("get_state", &Scaler::get_state)
        .def("state", &Scaler::state)
        .def("load_state", &Scaler::load_state, state)
        .def("set_rule", &Scaler::set_rule, py::arg("growth_factor"), py::arg("backoff_factor"),
             py::arg("growth_interval"));
    bound_class<Ema>(module, "_Ema", "The core's average of parameters; see yoke.optim.EMA.")
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
