// autograd.cpp: grad modes of the thread and yoke.grad.
#include "bind.h"

#include "yoke/autograd.h"

namespace yoke_python {
namespace {

// The gradients as a list; None where the outputs do not depend on an input.
py::list wrap_all(const std::vector<yoke_tensor *> &grads)
{
    py::list result;
    bool ok = true;
    for (yoke_tensor *grad : grads) {
        PyObject *item = grad ? wrap_tensor(grad) : new_reference(Py_None);  // every one is owned
        ok = item && PyList_Append(result.ptr(), item) == 0 && ok;
        Py_XDECREF(item);
    }
    require(ok);
    return result;
}

// Gradients that weigh the outputs: None stands for 1.
class Weights {
public:
    Weights(const py::object &value, int64_t outputs)
    {
        if (value.is_none()) return;
        const py::object items = taken(PySequence_Tuple(value.ptr()));
        if (PyTuple_GET_SIZE(items.ptr()) != outputs)
            require(raise_error(YOKE_E_VALUE, "grad", "there are %zd grad_outputs for %lld outputs",
                                PyTuple_GET_SIZE(items.ptr()),
                                static_cast<long long>(outputs)) != nullptr);
        keep_ = items;
        for (const py::handle item : keep_)
            tensors_.push_back(item.is_none() ? nullptr
                                              : need_tensor(item, "grad", "grad_outputs"));
        for (yoke_tensor *tensor : tensors_) yoke_tensor_retain(tensor);
    }
    ~Weights()
    {
        for (yoke_tensor *tensor : tensors_) yoke_tensor_release(tensor);
    }
    Weights(const Weights &) = delete;
    Weights &operator=(const Weights &) = delete;

    yoke_tensor *const *data() const { return tensors_.empty() ? nullptr : tensors_.data(); }

private:
    py::object keep_;
    std::vector<yoke_tensor *> tensors_;
};

py::object as_sequence(const py::object &value)
{
    return is_tensor(value.ptr()) ? py::object(py::make_tuple(value)) : value;
}

py::list grad(const py::object &outputs, const py::object &inputs, const py::object &grad_outputs,
              const py::object &retain_graph)
{
    const TensorSequence from(as_sequence(outputs), "grad", "outputs");
    const TensorSequence to(as_sequence(inputs), "grad", "inputs");
    const Weights weights(is_tensor(grad_outputs.ptr()) ? as_sequence(grad_outputs) : grad_outputs,
                          from.size());
    const int32_t retain = need_bool(retain_graph, "grad", "retain_graph");
    std::vector<yoke_tensor *> grads(static_cast<size_t>(to.size()));
    yoke_status status;
    {
        const ReleaseGil release;
        status = yoke_grad(from.data(), from.size(), weights.data(), to.data(), to.size(), retain,
                           grads.data());
    }
    check(status);
    return wrap_all(grads);
}

}  // namespace

void bind_autograd(py::module_ &module)
{
    module.def(
        "_set_grad_enabled",
        [](const py::object &on) {
            return yoke_set_grad_enabled(need_bool(on, "set_grad_enabled", "enabled")) == 1;
        },
        py::arg("enabled"));
    module.def(
        "is_grad_enabled", [] { return yoke_is_grad_enabled() == 1; },
        "Whether this thread records ops for gradients.");
    module.def("_grad", grad, py::arg("outputs"), py::arg("inputs"), py::arg("grad_outputs"),
               py::arg("retain_graph"));
}

}  // namespace yoke_python
