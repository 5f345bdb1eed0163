#include "parameters.h"

namespace yoke_python {
namespace {

int find(const char *const *names, int count, PyObject *name)
{
    for (int i = 0; i < count; i++)
        if (PyUnicode_CompareWithASCIIString(name, names[i]) == 0) return i;
    return -1;
}

}  // namespace

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
    for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); i++) {
        PyObject *name = PyTuple_GET_ITEM(keywords, i);
        const int at = find(names, count, name);
        if (at < 0 || at < given) {
            raise_error(YOKE_E_TYPE, call,
                        at < 0 ? "there is no argument '%U'" : "argument '%U' is given twice",
                        name);
            return false;
        }
        values[at] = args[given + i];
    }
    for (int i = 0; i < count; i++) {
        if (values[i]) continue;
        raise_error(YOKE_E_TYPE, call, "argument '%s' is missing", names[i]);
        return false;
    }
    return true;
}

}  // namespace yoke_python
