// bind.h: classes and functions bound through pybind11, where a call's cost does not count: Python's errors as C++
// exceptions, and the base of our classes.
#pragma once

#include "bindings/python/src/runtime/call.h"
#include "bindings/python/src/runtime/error.h"
#include "bindings/python/src/runtime/log.h"

#include <pybind11/pybind11.h>

#include <cstring>
#include <type_traits>
#include <typeinfo>

namespace yoke_python {

namespace py = pybind11;

// Base of every class bound here with pybind11. bound_class() registers the class, object_in() finds the base in a
// Python object.
struct Bound {};

// Returns the record that pybind11 has of T's class.
template <class T>
const py::detail::type_info &bound_type()
{
    static const py::detail::type_info &type = *py::detail::get_type_info(typeid(T), true);
    return type;
}

// Returns the C++ object in an instance of T's class. Null for any other object, even with a false class. Null for an
// instance without an object, because __init__ never ran (T.__new__(T), a reconstruction by copyreg).
template <class T>
T *object_in(PyObject *object)
{
    const py::detail::type_info &type = bound_type<T>();
    if (!PyObject_TypeCheck(object, type.type)) return nullptr;
    auto *instance = reinterpret_cast<py::detail::instance *>(object);
    return static_cast<T *>(instance->get_value_and_holder(&type).value_ptr());
}

// Raises for an instance without an object; the message blames the maker of the instance, not its type.
[[noreturn]] void refuse_unmade(PyObject *object);

// Refuses copy and pickle, of every protocol, by name: a copy would be an instance without an object in it.
void refuse_copies(py::object &type);

// Refuses calls of a class whose objects other calls of Yoke return. `instead` says which calls do.
void refuse_calls(const py::object &type, const char *instead);

// Makes py::class_ for a class of Yoke.
template <class T>
py::class_<T> bound_class(
    py::module_ &module, const char *name, const char *doc = "",
    py::custom_type_setup::callback setup = [](PyHeapTypeObject *) {})
{
    static_assert(std::is_base_of_v<Bound, T>);
    py::class_<T> type(module, name, doc, py::custom_type_setup(std::move(setup)));
    refuse_copies(type);
    return type;
}

// Throws the Python error that is set unless `ok`.
inline void require(bool ok)
{
    if (!ok) throw py::error_already_set();
}

// Throws the last error of a call, after passing on its log lines.
inline void check(yoke_status status)
{
    if (status) raise_last_error();
    require(!status && (!log_waits() || drain_log()));
}

// Returns the new reference of a C function as an object; throws the Python error set for null.
inline py::object taken(PyObject *object)
{
    require(object != nullptr);
    return py::reinterpret_steal<py::object>(object);
}

// Returns a text of the system: a process, a folder, a variable. Such a text need not be UTF-8. Invalid bytes become
// U+FFFD, because the texts are for display and surrogates would make the display fail.
inline py::object text_of(const char *text)
{
    return taken(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(strlen(text)), "replace"));
}

// Puts the arguments of a call into `values`, set to the defaults before. TypeError names an unknown keyword and the
// nearest name, unlike pybind11's error.
void read_call(const char *call, std::initializer_list<const char *> names, const py::args &args,
               const py::kwargs &keywords, std::initializer_list<PyObject **> values);

}  // namespace yoke_python

namespace pybind11::detail {

// Converter that refuses instances without an object, because pybind11 would invent memory for them and pass it on
// uninitialized. A call on an object of Yoke also puts the modes of the running context in force.
template <class T>
class type_caster<T, enable_if_t<std::is_base_of_v<yoke_python::Bound, T>>>
    : public type_caster_base<T> {
public:
    bool load(handle source, bool convert)
    {
        if (source && PyObject_TypeCheck(source.ptr(), yoke_python::bound_type<T>().type) &&
            !yoke_python::object_in<T>(source.ptr()))
            yoke_python::refuse_unmade(source.ptr());
        yoke_python::sync_modes();
        return type_caster_base<T>::load(source, convert);
    }
};

}  // namespace pybind11::detail
