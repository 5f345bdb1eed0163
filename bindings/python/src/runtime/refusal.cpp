#include "bindings/python/src/runtime/refusal.h"

#include "bindings/python/src/runtime/parameters.h"

namespace yoke_python {
namespace {

// pybind11's only C function. All bound functions have it in their method definition.
PyCFunctionWithKeywords dispatch;

// Replaces the pending TypeError by the library's, if pybind11 has refused the arguments. An error from Python code has
// a traceback, and stays.
void name_refusal(PyObject *args, PyObject *keywords)
{
    PyObject *kind = nullptr, *error = nullptr, *trace = nullptr;
    PyErr_Fetch(&kind, &error, &trace);
    PyObject *text = error && !trace ? PyObject_Str(error) : nullptr;
    PyObject *module = text ? PyImport_ImportModule("yoke._named") : nullptr;
    PyObject *other = module ? PyObject_CallMethod(module, "refuse_bound", "OOO", text, args,
                                                   keywords ? keywords : Py_None)
                             : nullptr;
    const bool is_replaced = module && !other;
    Py_XDECREF(other);
    Py_XDECREF(module);
    Py_XDECREF(text);
    if (is_replaced) {
        Py_XDECREF(kind);
        Py_XDECREF(error);
        Py_XDECREF(trace);
    } else {
        PyErr_Clear();
        PyErr_Restore(kind, error, trace);
    }
}

PyObject *call_bound(PyObject *self, PyObject *args, PyObject *keywords)
{
    PyObject *result = dispatch(self, args, keywords);
    if (!result && PyErr_Occurred() == PyExc_TypeError) [[unlikely]]  // not a subclass
        name_refusal(args, keywords);
    return result;
}

PyMethodDef *definition_of(PyObject *object)
{
    if (PyInstanceMethod_Check(object)) object = PyInstanceMethod_GET_FUNCTION(object);
    return PyCFunction_Check(object) ? reinterpret_cast<PyCFunctionObject *>(object)->m_ml
                                     : nullptr;
}

void name_refusals_in(const py::handle &names)
{
    for (const auto &[name, value] : py::reinterpret_borrow<py::dict>(names)) {
        PyMethodDef *const method = definition_of(value.ptr());
        if (method && method->ml_meth == keywords(dispatch)) method->ml_meth = keywords(call_bound);
    }
}

}  // namespace

void name_refusals(const py::module_ &module)
{
    const py::cpp_function any([] {});
    dispatch = reinterpret_cast<PyCFunctionWithKeywords>(
        reinterpret_cast<void (*)()>(definition_of(any.ptr())->ml_meth));
    const py::dict names = module.attr("__dict__");
    for (const auto &[name, value] : names)
        if (PyType_Check(value.ptr()))
            name_refusals_in(reinterpret_cast<PyTypeObject *>(value.ptr())->tp_dict);
    name_refusals_in(names);
}

}  // namespace yoke_python
