// autograd.cpp: grad modes, which modes.h gives to contexts, and yoke.grad.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/runtime/interrupt.h"
#include "bindings/python/src/values/dtype.h"
#include "bindings/python/src/values/modes.h"
#include "bindings/python/src/values/need.h"

#include "yoke/amp.h"
#include "yoke/autograd.h"

#include <utility>

namespace yoke_python {

namespace {

// Gradients that weigh the outputs: None stands for 1.
class Weights {
public:
    Weights(const py::object &value, int64_t outputs, const char *call, const char *argument)
    {
        if (value.is_none()) return;
        const py::object items = taken(PySequence_Tuple(value.ptr()));
        if (PyTuple_GET_SIZE(items.ptr()) != outputs)
            require(raise_error(
                        YOKE_E_VALUE, call,
                        "argument '%s' has %zd items for %lld outputs; give one for each output",
                        argument, PyTuple_GET_SIZE(items.ptr()),
                        static_cast<long long>(outputs)) != nullptr);
        keep_ = items;
        for (const py::handle item : keep_)
            tensors_.push_back(item.is_none() ? nullptr : need_tensor(item, call, argument));
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

py::list grads_of(const py::object &outputs, const py::object &inputs,
                  const py::object &grad_outputs, bool retain, bool allow_unused)
{
    const TensorSequence from(as_sequence(outputs), "grad", "outputs");
    const TensorSequence to(as_sequence(inputs), "grad", "inputs");
    const Weights weights(is_tensor(grad_outputs.ptr()) ? as_sequence(grad_outputs) : grad_outputs,
                          from.size(), "grad", "grad_outputs");
    std::vector<yoke_tensor *> grads(static_cast<size_t>(to.size()));
    sync_modes();
    const Relieved relieved;
    wait_in([&] {
        return yoke_grad_v2(from.data(), from.size(), weights.data(), to.data(), to.size(), retain,
                            allow_unused, grads.data());
    });
    return wrap_all(grads);
}

// Computes the gradients of several outputs, and with `inputs`, of these alone.
void backward_of(const py::object &outputs, const py::object &gradients, const py::object &inputs,
                 bool retain)
{
    const TensorSequence from(as_sequence(outputs), "backward", "tensors");
    const TensorSequence to(as_sequence(inputs), "backward", "inputs");
    const Weights weights(is_tensor(gradients.ptr()) ? as_sequence(gradients) : gradients,
                          from.size(), "backward", "grad_tensors");
    sync_modes();
    const Relieved relieved;
    wait_in([&] {
        return yoke_backward_v2(from.data(), from.size(), weights.data(), to.data(), to.size(),
                                retain);
    });
}

py::list saved_tensors(const py::object &tensor)
{
    yoke_tensor *const handle = need_tensor(tensor, "saved_tensors", "tensor");
    py::list all;
    const int64_t count = yoke_tensor_saved_count(handle);
    for (int64_t i = 0; i < count; ++i) {
        yoke_saved saved{};
        saved.struct_size = sizeof saved;
        check(yoke_tensor_saved(handle, i, &saved));
        py::tuple shape(saved.ndim);
        for (int64_t axis = 0; axis < saved.ndim; ++axis)
            shape[static_cast<size_t>(axis)] = saved.shape[axis];
        all.append(py::make_tuple(saved.op, saved.argument, taken(dtype_object(saved.dtype)), shape,
                                  saved.nbytes, saved.recomputed == 1));
    }
    return all;
}

}  // namespace

void bind_autograd(py::module_ &module)
{
    module.def(
        "_set_grad_enabled",
        [](const py::object &on) {
            const bool enabled = need_bool(on, "set_grad_enabled", "enabled");
            sync_modes();
            const bool before = yoke_is_grad_enabled() == 1;
            if (!override_mode("grad", py::bool_(enabled))) yoke_set_grad_enabled(enabled);
            return before;
        },
        py::arg("enabled"));
    module.def(
        "is_grad_enabled",
        [] {
            sync_modes();
            return yoke_is_grad_enabled() == 1;
        },
        "Returns whether this thread records ops for gradients.");
    module.def(
        "is_autocast_enabled",
        [] {
            sync_modes();
            return yoke_is_autocast_enabled() == 1;
        },
        "Returns whether this thread is in an autocast region, which casts the operands of ops.");
    module.def(
        "get_autocast_dtype",
        [](const py::object &device) {
            yoke_device *where = nullptr;
            require(to_device(device.ptr(), Place{"get_autocast_dtype", "device"}, &where));
            return taken(dtype_object(yoke_autocast_dtype(where)));
        },
        py::arg("device") = py::none(),
        "Returns the 16-bit dtype to which autocast casts on a device.");
    module.def("_saved_tensors", saved_tensors, py::arg("tensor"));
    module.def("_grad", grads_of, py::arg("outputs"), py::arg("inputs"), py::arg("grad_outputs"),
               py::arg("retain_graph"), py::arg("allow_unused"));
    module.def("_backward", backward_of, py::arg("tensors"), py::arg("grad_tensors"),
               py::arg("inputs"), py::arg("retain_graph"));
}

}  // namespace yoke_python
