#include "bindings/python/src/runtime/bind.h"

#include "bindings/python/src/runtime/log.h"
#include "bindings/python/src/runtime/parameters.h"

namespace yoke_python {

void check(yoke_status status)
{
    if (status) {
        raise_last_error();
        throw py::error_already_set();
    }
    if (log_waits()) require(drain_log());
}

void refuse_unmade(PyObject *object)
{
    raise_error(YOKE_E_TYPE, "__init__", "this %.100s was made without it; call the class instead",
                Py_TYPE(object)->tp_name);
    throw py::error_already_set();
}

void refuse_copies(py::object &type)
{
    const auto refuse = [](const py::object &self, const py::object &) {
        raise_error(
            YOKE_E_TYPE, "__reduce_ex__",
            "a %.100s can neither be copied nor pickled: it stands for something of this process; make a new one",
            Py_TYPE(self.ptr())->tp_name);
        throw py::error_already_set();
    };
    type.attr("__reduce_ex__") =
        py::cpp_function(refuse, py::name("__reduce_ex__"), py::is_method(type));
}

void read_call(const char *call, std::initializer_list<const char *> names, const py::args &args,
               const py::kwargs &keywords, std::initializer_list<PyObject **> values)
{
    std::vector<PyObject *> given, found;
    py::list words;
    for (const py::handle each : args) given.push_back(each.ptr());
    for (const auto &[word, value] : keywords) {
        words.append(word);
        given.push_back(value.ptr());
    }
    for (PyObject *const *each : values) found.push_back(*each);
    require(read_parameters(call, names.begin(), static_cast<int>(names.size()), 0, given.data(),
                            static_cast<Py_ssize_t>(args.size()), py::tuple(words).ptr(),
                            found.data()));
    auto value = found.begin();
    for (PyObject **each : values) *each = *value++;
}

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
        require(raise_error(YOKE_E_VALUE, call, "argument '%s' is %R; a path holds no NUL",
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

}  // namespace yoke_python
