#include "bind.h"

#include "log.h"

namespace yoke_python {

void check(yoke_status status)
{
    if (status) {
        raise_last_error();
        throw py::error_already_set();
    }
    if (log_waits()) require(drain_log());
}

TensorSequence::TensorSequence(py::handle value, const char *call, const char *argument)
{
    if (!PySequence_Check(value.ptr()) || is_tensor(value.ptr()))
        require(raise_type({call, argument}, "a sequence of tensors", value.ptr()) != nullptr);
    const py::object items = taken(PySequence_Tuple(value.ptr()));
    const Py_ssize_t count = PyTuple_GET_SIZE(items.ptr());
    for (Py_ssize_t i = 0; i < count; i++)  // before any is retained: this may throw
        need_tensor(PyTuple_GET_ITEM(items.ptr(), i), call, argument);
    tensors_.reserve(static_cast<size_t>(count));
    for (Py_ssize_t i = 0; i < count; i++)
        tensors_.push_back(yoke_tensor_retain(handle_of(PyTuple_GET_ITEM(items.ptr(), i))));
}

TensorSequence::~TensorSequence()
{
    for (yoke_tensor *tensor : tensors_) yoke_tensor_release(tensor);
}

}  // namespace yoke_python
