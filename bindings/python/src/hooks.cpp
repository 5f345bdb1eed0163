// hooks.cpp: code of the script that backward calls: hooks on gradients, and backward of yoke.autograd.Function.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/runtime/interrupt.h"
#include "bindings/python/src/runtime/parameters.h"
#include "bindings/python/src/runtime/relief.h"
#include "bindings/python/src/values/modes.h"
#include "bindings/python/src/values/need.h"

#include "yoke/autograd.h"

#include <pybind11/stl.h>

#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace yoke_python {

namespace {

// ---- Code of the script -----------------------------------------------------------------------------------------

thread_local std::string problem_text;  // of the thread's last code that failed

// Function of the script, which a node of the tape holds. An exception leaves backward() as it was raised.
class ScriptCode {
public:
    explicit ScriptCode(py::object function) : function_(std::move(function)) {}

    template <class Body>
    static yoke_status run(void *user, Body body) noexcept
    {
        const Amid amid;
        try {
            body(static_cast<ScriptCode *>(user)->function_);
            return YOKE_OK;
        } catch (const std::exception &error) {
            problem_text = Waiting::keep(error, Waiting::kRaised);
            return YOKE_E_CANCELLED;
        }
    }
    static const char *problem(void *) { return problem_text.c_str(); }
    static void drop(void *user)
    {
        if (!Py_IsInitialized()) return;  // the interpreter's objects are gone
        const py::gil_scoped_acquire held;
        const py::error_scope error;
        delete static_cast<ScriptCode *>(user);
    }

private:
    const py::object function_;
};

py::object borrowed_tensor(yoke_tensor *tensor)
{
    return tensor ? taken(wrap_tensor(yoke_tensor_retain(tensor))) : py::object(py::none());
}

py::tuple borrowed_tensors(yoke_tensor *const *tensors, int64_t count)
{
    py::tuple all(count);
    for (int64_t i = 0; i < count; ++i) all[static_cast<size_t>(i)] = borrowed_tensor(tensors[i]);
    return all;
}

// Returns a new reference to the tensor that the script has returned; null for None.
yoke_tensor *given_tensor(py::handle value, const char *what)
{
    if (value.is_none()) return nullptr;
    if (!is_tensor(value.ptr()))
        require(raise_type({"backward", what}, "a tensor or None", value.ptr()) != nullptr);
    return yoke_tensor_retain(need_tensor(value, "backward", what));
}

// ---- Hooks ------------------------------------------------------------------------------------------------------

yoke_status run_hook(void *user, yoke_tensor *gradient, yoke_tensor **replacement) noexcept
{
    return ScriptCode::run(user, [&](const py::object &function) {
        *replacement = given_tensor(function(borrowed_tensor(gradient)), "the hook's result");
    });
}

// Handle of a hook, with remove().
class Hook : public Bound {
public:
    explicit Hook(yoke_hook *handle) : handle_(handle) {}
    ~Hook() { yoke_hook_release(handle_); }
    Hook(const Hook &) = delete;
    Hook &operator=(const Hook &) = delete;
    void remove() const { check(yoke_hook_remove(handle_)); }

private:
    yoke_hook *const handle_;
};

PyObject *register_hook(PyObject *self, PyObject *function)
try {
    yoke_tensor *tensor = tensor_argument(self, {"register_hook", "self"});
    if (!tensor) return nullptr;
    if (!PyCallable_Check(function))
        return raise_type({"register_hook", "hook"}, "a function that takes the gradient",
                          function);
    auto code = std::make_unique<ScriptCode>(py::reinterpret_borrow<py::object>(function));
    yoke_gradient_hook hook{};
    hook.struct_size = sizeof hook;
    hook.user = code.get();
    hook.run = run_hook;
    hook.problem = ScriptCode::problem;
    hook.drop = ScriptCode::drop;
    yoke_hook *handle = nullptr;
    if (yoke_tensor_add_hook(tensor, &hook, &handle)) return raise_last_error();
    static_cast<void>(code.release());
    return py::cast(std::make_unique<Hook>(handle)).release().ptr();
} catch (py::error_already_set &error) {
    error.restore();
    return nullptr;
} catch (const std::bad_alloc &) {
    return PyErr_NoMemory();
}

PyObject *retain_grad(PyObject *self, PyObject *)
{
    yoke_tensor *tensor = tensor_argument(self, {"retain_grad", "self"});
    if (!tensor) return nullptr;
    if (yoke_tensor_retain_grad(tensor)) return raise_last_error();
    Py_RETURN_NONE;
}

PyObject *retains_grad(PyObject *self, void *)
{
    yoke_tensor *tensor = tensor_argument(self, {"retains_grad", "self"});
    return tensor ? PyBool_FromLong(yoke_tensor_retains_grad(tensor) == 1) : nullptr;
}

const PyMethodDef hook_methods[] = {
    {"register_hook", keywords(with_argument<"register_hook", "hook", register_hook>), kKeywords,
     "register_hook($self, /, hook)\n--\n\n"
     "Calls hook(gradient) in each backward to this tensor, on the whole gradient, before a leaf adds it. A returned\n"
     "tensor of the same shape, dtype and device takes the gradient's place. Returns a handle with remove(), which a\n"
     "`with` block calls at its end. StateError for a tensor that does not require grad."},
    {"retain_grad", keywords(without_arguments<"retain_grad", retain_grad>), kKeywords,
     "retain_grad($self, /)\n--\n\n"
     "Has this result of an op keep its gradient in .grad, as a leaf does. No effect on a leaf."},
};
const PyGetSetDef hook_attributes[] = {
    {"retains_grad", retains_grad, nullptr, "True after retain_grad() of a result of an op.",
     nullptr},
};

// ---- Functions --------------------------------------------------------------------------------------------------

yoke_status run_function(void *user, yoke_tensor *const *saved, int64_t saved_count,
                         yoke_tensor *const *gradients, int64_t gradient_count,
                         yoke_tensor **input_gradients, int64_t input_count) noexcept
{
    return ScriptCode::run(user, [&](const py::object &function) {
        const py::tuple made = function(borrowed_tensors(saved, saved_count),
                                        borrowed_tensors(gradients, gradient_count));
        for (int64_t i = 0; i < input_count; ++i)
            input_gradients[i] = given_tensor(made[static_cast<size_t>(i)], "a gradient");
    });
}

// Tensors of a sequence, held for as long as this object lives; other objects count as no tensor.
class Optionals {
public:
    explicit Optionals(const py::sequence &items)
    {
        for (const py::handle item : items) {
            yoke_tensor *tensor =
                is_tensor(item.ptr()) ? need_tensor(item, "apply", "input") : nullptr;
            tensors_.push_back(yoke_tensor_retain(tensor));
        }
    }
    ~Optionals()
    {
        for (yoke_tensor *tensor : tensors_) yoke_tensor_release(tensor);
    }
    Optionals(const Optionals &) = delete;
    Optionals &operator=(const Optionals &) = delete;
    yoke_tensor *const *data() const { return tensors_.data(); }
    int64_t size() const { return static_cast<int64_t>(tensors_.size()); }

private:
    std::vector<yoke_tensor *> tensors_;
};

// Records a call of a Function, and returns the tensors in place of its outputs. `run` takes the saved tensors and the
// gradients, and returns a tuple with a gradient or None for each input.
py::list record_function(const std::string &name, const py::object &run, const py::sequence &saved,
                         const py::sequence &inputs, const py::sequence &outputs,
                         const std::vector<int32_t> &kinds, bool keeps_null)
{
    const Optionals kept(saved), from(inputs);
    const TensorSequence to(outputs, "apply", "the result of forward");
    auto code = std::make_unique<ScriptCode>(run);
    yoke_function function{};
    function.struct_size = sizeof function;
    function.keeps_null = keeps_null;
    function.name = name.c_str();
    function.user = code.get();
    function.run = run_function;
    function.problem = ScriptCode::problem;
    function.drop = ScriptCode::drop;
    function.saved = kept.data();
    function.saved_count = kept.size();
    std::vector<yoke_tensor *> recorded(kinds.size());
    sync_modes();
    check(yoke_function_record(&function, from.data(), from.size(), to.data(), to.size(),
                               kinds.data(), recorded.data()));
    static_cast<void>(code.release());
    return wrap_all(recorded);
}

}  // namespace

void add_hooks(TensorParts &parts)
{
    parts.add(hook_methods);
    parts.add(hook_attributes);
}

void bind_hooks(py::module_ &module)
{
    py::class_<Hook> hook = bound_class<Hook>(
        module, "_Hook", "Handle of a hook. If the handle goes, the hook stays in place.");
    hook.def("remove", &Hook::remove)
        .def("__enter__", [](const py::object &self) { return self; })
        .def("__exit__", [](const Hook &self, const py::args &) { self.remove(); });
    refuse_calls(hook, "register_hook() of a tensor");
    module.def("_record_function", record_function);
    module.def("_truth", [](const py::object &value, const char *call, const char *argument) {
        return need_bool(value, call, argument);
    });
    module.def("_set_detect_anomaly", [](int32_t mode) {
        sync_modes();
        const int32_t before = yoke_get_detect_anomaly();
        if (!override_mode("anomaly", py::int_(mode))) yoke_set_detect_anomaly(mode);
        return before;
    });
    module.def("_get_detect_anomaly", [] {
        sync_modes();
        return yoke_get_detect_anomaly();
    });
}

}  // namespace yoke_python
