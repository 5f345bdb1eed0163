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

bool raise_keyword(const char *call, const char *const *names, int count, PyObject *name)
{
    std::string known;
    for (int i = 0; i < count; i++) known += (i ? ", " : "") + std::string(names[i]);
    PyObject *problem = unknown_keyword(name, names, count);
    if (problem) raise_error(YOKE_E_TYPE, call, "%U: %s(%s)", problem, call, known.c_str());
    Py_XDECREF(problem);
    return false;
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
        if (other.place < 0) return raise_keyword(call, names, count, name);
        if (other.place < given || said[other.place]) return raise_twice(other.place, text);
        said[other.place] = text;
        values[other.place] = other.is_flag ? flag_number(call, text, value) : value;
        return values[other.place] != nullptr;
    }

    bool raise_twice(int place, const char *text) const
    {
        const char *first = said[place] ? said[place] : names[place];
        if (std::strcmp(first, text) != 0) return raise_both_names(call, first, text);
        raise_error(YOKE_E_TYPE, call, "argument '%s' is given twice; give it once", text);
        return false;
    }
};

}  // namespace

PyObject *unknown_keyword(PyObject *name, const char *const *names, int count, bool is_ours)
{
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) PyErr_Clear();  // a lone surrogate is near to no name
    const char *meant = text ? yoke_meant_word(text, names, count) : nullptr;
    const bool is_beginning = meant && !std::strncmp(meant, text, std::strlen(text));
    if (const char *advice = text && is_ours && !is_beginning ? yoke_word_advice(text) : nullptr)
        return PyUnicode_FromFormat("there is no argument '%U'; %s", name, advice);
    return meant
               ? PyUnicode_FromFormat("there is no argument '%U'; did you mean '%s'?", name, meant)
               : PyUnicode_FromFormat("there is no argument '%U'; the arguments are", name);
}

bool read_parameters(const char *call, const char *const *names, int count, int keyword_only,
                     PyObject *const *args, Py_ssize_t given, PyObject *keywords, PyObject **values)
{
    const int positional = count - keyword_only;
    if (given > positional) {
        raise_error(YOKE_E_TYPE, call, "takes at most %d positional argument%s but %zd were given",
                    positional, positional == 1 ? "" : "s", given);
        return false;
    }
    for (Py_ssize_t i = 0; i < given; i++) values[i] = args[i];
    KeywordReader reader{call, names, count, given, values};
    for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); i++)
        if (!reader.read(PyTuple_GET_ITEM(keywords, i), args[given + i])) return false;
    for (int i = 0; i < count; i++) {
        if (values[i]) continue;
        raise_error(YOKE_E_TYPE, call, "argument '%s' is missing", names[i]);
        return false;
    }
    return true;
}

}  // namespace yoke_python
