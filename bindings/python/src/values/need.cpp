#include "bindings/python/src/values/need.h"

namespace yoke_python {

py::bytes need_path(py::handle value, const char *call, const char *argument)
{
    if (!PyUnicode_Check(value.ptr()) && !PyBytes_Check(value.ptr()) &&
        !py::hasattr(value, "__fspath__"))
        require(raise_type({call, argument}, "a str, bytes or os.PathLike", value.ptr()) !=
                nullptr);
    const py::object path = taken(PyOS_FSPath(value.ptr()));
    const py::object bytes =
        PyUnicode_Check(path.ptr()) ? taken(PyUnicode_EncodeFSDefault(path.ptr())) : path;
    char *text = nullptr;
    Py_ssize_t length = 0;
    require(PyBytes_AsStringAndSize(bytes.ptr(), &text, &length) == 0);
    if (std::strlen(text) != static_cast<size_t>(length))
        require(raise_error(YOKE_E_VALUE, call, "argument '%s' is %R; a path must not contain NUL",
                            argument, value.ptr()) != nullptr);
    return py::reinterpret_borrow<py::bytes>(bytes);
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

py::list wrap_all(const std::vector<yoke_tensor *> &tensors)
{
    py::list result;
    bool ok = true;
    for (yoke_tensor *each : tensors) {
        PyObject *item = each ? wrap_tensor(each) : new_reference(Py_None);  // every one is owned
        ok = item && PyList_Append(result.ptr(), item) == 0 && ok;
        Py_XDECREF(item);
    }
    require(ok);
    return result;
}

}  // namespace yoke_python
