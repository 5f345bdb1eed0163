#include "bindings/python/src/runtime/parameters.h"

#include "bindings/python/src/runtime/other_names.h"

#include "yoke/runtime.h"

#include <cstring>
#include <string>

namespace yoke_python {
namespace {

int find(const char *const *names, int count, PyObject *name)
{
    for (int i = 0; i < count; i++)
        if (PyUnicode_CompareWithASCIIString(name, names[i]) == 0) return i;
    return -1;
}

// Raises TypeError with a problem and the parameters of the call; takes the reference. Returns false.
bool raise_misfit(const char *call, const char *const *names, int count, PyObject *problem)
{
    std::string known;
    for (int i = 0; i < count; i++) known += (i ? ", " : "") + std::string(names[i]);
    if (problem) raise_error(YOKE_E_TYPE, call, "%U: %s(%s)", problem, call, known.c_str());
    Py_XDECREF(problem);
    return false;
}

PyObject *surplus(int positional, int count, Py_ssize_t given)
{
    const char *const kind = count ? "positional " : "";
    const char *const verb = given == 1 ? "was" : "were";
    return positional
               ? PyUnicode_FromFormat("takes at most %d positional argument%s but %zd %s given",
                                      positional, positional == 1 ? "" : "s", given, verb)
               : PyUnicode_FromFormat("takes no %sarguments but %zd %s given", kind, given, verb);
}

constexpr int kMostParameters = 32;

// Keywords of one call, put into `values` one after the other.
struct KeywordReader {
    const char *call;
    const char *const *names;
    int count;
    Py_ssize_t given;  // arguments by place
    PyObject **values;
    const char *said[kMostParameters] = {};  // name of each argument in the call

    bool read(PyObject *name, PyObject *value)
    {
        int at = find(names, count, name);
        const char *text = at < 0 ? PyUnicode_AsUTF8(name) : names[at];
        OtherName other{at, false};
        if (!text) PyErr_Clear();  // a lone surrogate is no name
        if (at < 0 && text) other = find_other_name(call, text, names, count);
        if (other.place < 0)
            return raise_misfit(call, names, count, unknown_keyword(name, names, count));
        if (other.place < given || said[other.place]) return raise_twice(other.place, text);
        said[other.place] = text;
        values[other.place] = other.is_flag ? flag_number(call, text, value) : value;
        return values[other.place] != nullptr;
    }

    bool raise_twice(int place, const char *text) const
    {
        const char *first = said[place] ? said[place] : names[place];
        if (std::strcmp(first, text) != 0) return raise_both_names(call, first, text);
        return raise_misfit(
            call, names, count,
            PyUnicode_FromFormat(
                "argument '%s' is given twice, by position and by name; give it once", text));
    }
};

}  // namespace

PyObject *unknown_keyword(PyObject *name, const char *const *names, int count, bool is_ours)
{
    const char *text = PyUnicode_AsUTF8(name);
    const char *const known = count ? "the arguments are" : "the call takes none";
    if (!text) PyErr_Clear();  // a lone surrogate is near to no name
    const char *meant = text ? yoke_meant_word(text, names, count) : nullptr;
    const bool is_beginning = meant && !std::strncmp(meant, text, std::strlen(text));
    if (const char *advice = text && is_ours && !is_beginning ? yoke_word_advice(text) : nullptr)
        return PyUnicode_FromFormat("there is no argument '%U'; %s", name, advice);
    return meant
               ? PyUnicode_FromFormat("there is no argument '%U'; did you mean '%s'?", name, meant)
               : PyUnicode_FromFormat("there is no argument '%U'; %s", name, known);
}

bool read_parameters(const char *call, const char *const *names, int count, int keyword_only,
                     PyObject *const *args, Py_ssize_t given, PyObject *keywords, PyObject **values)
{
    const int positional = count - keyword_only;
    if (given > positional)
        return raise_misfit(call, names, count, surplus(positional, count, given));
    for (Py_ssize_t i = 0; i < given; i++) values[i] = args[i];
    KeywordReader reader{call, names, count, given, values};
    for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); i++)
        if (!reader.read(PyTuple_GET_ITEM(keywords, i), args[given + i])) return false;
    for (int i = 0; i < count; i++)
        if (!values[i])
            return raise_misfit(call, names, count,
                                PyUnicode_FromFormat("argument '%s' is missing", names[i]));
    return true;
}

}  // namespace yoke_python
