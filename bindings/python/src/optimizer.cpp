// optimizer.cpp: the core's optimizers as one class (yoke.optim adds PyTorch's interface), and the loss scaler that
// steps them. Options come as a dict with every option of the kind.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/values/need.h"
#include "bindings/python/src/values/tree.h"

#include "yoke/amp.h"
#include "yoke/optim.h"

#include <string>

namespace yoke_python {
namespace {

// Returns the value of an option; `call` is the kind of optimizer.
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

using ScalerState = yoke_grad_scaler_options;

// Reads a tuple (scale, growth_factor, backoff_factor, growth_interval, growth_tracker). `scale` is the caller's name
// of the first value.
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
    // Runs the call once: a second try would repeat changes of the first, so relief runs within the call.
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

}  // namespace

void bind_optimizer(py::module_ &module)
{
    const py::arg group("group"), options("options"), state("state"), optimizer("optimizer");
    bound_class<Optimizer>(module, "_Optimizer", "Optimizer of the core; see yoke.optim.Optimizer.")
        .def(py::init<const std::string &, const py::dict &>(), py::arg("kind"), options)
        .def("add_group", &Optimizer::add_group, py::arg("params"), options)
        .def("set_options", &Optimizer::set_options, group, options)
        .def("step", &Optimizer::step)
        .def("zero_grad", &Optimizer::zero_grad, py::arg("set_to_none"))
        .def("note_schedule", &Optimizer::note_schedule)
        .def("state", &Optimizer::state)
        .def("load_state", &Optimizer::load_state, state);
    bound_class<Scaler>(module, "_GradScaler", "Loss scaler of the core; see yoke.GradScaler.")
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
}

}  // namespace yoke_python
