#include "bindings/python/src/runtime/bind.h"

#include "bindings/python/src/runtime/parameters.h"

#include <string>
#include <vector>

namespace yoke_python {

void refuse_unmade(PyObject *object)
{
    raise_error(YOKE_E_TYPE, "__init__",
                "this %.100s was created without __init__; call the class to create an object",
                Py_TYPE(object)->tp_name);
    throw py::error_already_set();
}

void refuse_copies(py::object &type)
{
    const auto refuse = [](const py::object &self, const py::object &) {
        raise_error(
            YOKE_E_TYPE, "__reduce_ex__",
            "a %.100s can neither be copied nor pickled, because it belongs to this process; create a new object",
            Py_TYPE(self.ptr())->tp_name);
        throw py::error_already_set();
    };
    type.attr("__reduce_ex__") =
        py::cpp_function(refuse, py::name("__reduce_ex__"), py::is_method(type));
}

void refuse_calls(const py::object &type, const char *instead)
{
    const std::string name = py::str(type.attr("__name__"));
    const auto refuse = [=](const py::object &, const py::args &, const py::kwargs &) {
        raise_error(YOKE_E_TYPE, name.c_str(), "a script cannot create a %s; %s", name.c_str(),
                    instead);
        throw py::error_already_set();
    };
    // Under the name __init__, pybind11 of a debug build warns that the function leaves the object unmade.
    type.attr("__init__") = py::cpp_function(refuse, py::name(name.c_str()), py::is_method(type));
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

}  // namespace yoke_python
