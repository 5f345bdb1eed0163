#include "bindings/python/src/runtime/script.h"

#include "bindings/python/src/runtime/bind.h"

#include "yoke/autograd.h"
#include "yoke/runtime.h"

#include <cstring>
#include <string>

namespace yoke_python {

namespace {

struct Noted {
    const char *file = nullptr, *function = nullptr;
    int32_t line = 0;
};
thread_local Noted noted;

// "/…/yoke/", and the file of the standard library's contextlib, whose frames stand between the package's and a `with`
// of the script's; never destroyed: other threads may ask while the process ends.
std::string &package = *new std::string, &contextlib = *new std::string;

// Returns a text in UTF-8, borrowed from the code, which the frame keeps; null for a name with lone surrogates.
const char *utf8_of(PyObject *text) noexcept
{
    const char *const bytes = PyUnicode_AsUTF8(text);
    if (!bytes) PyErr_Clear();  // a name with lone surrogates
    return bytes;
}

PyCodeObject *code_of(PyFrameObject *frame) noexcept
{
    PyCodeObject *const code = PyFrame_GetCode(frame);
    Py_DECREF(code);
    return code;
}

bool is_passed_over(PyCodeObject *code) noexcept
{
    const char *const file = utf8_of(code->co_filename);
    return file && (strncmp(file, package.c_str(), package.size()) == 0 || file == contextlib);
}

// Returns the innermost line of the running script outside the package. Its texts live as long as the frame.
Noted find_line() noexcept
{
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    while (frame && is_passed_over(code_of(frame))) {
        PyFrameObject *const outer = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = outer;
    }
    if (!frame) return {};
    PyCodeObject *const code = code_of(frame);
    const Noted found{utf8_of(code->co_filename), utf8_of(code->co_name),
                      PyFrame_GetLineNumber(frame)};
    Py_DECREF(frame);
    return found;
}

// Ops note no line, since few calls need one: in the mode that looks for NaN the line is found here.
int32_t tell(void *, const char **file, int32_t *line, const char **function)
{
    Noted here = noted;
    if (!here.file && yoke_get_detect_anomaly() && Py_IsInitialized()) {
        const py::gil_scoped_acquire held;
        here = find_line();
    }
    *file = here.file;
    *line = here.line;
    *function = here.function;
    return here.file != nullptr;
}

// Reads the file name from contextlib's code, because frames have this name.
bool find_contextlib()
try {
    const py::object code =
        py::module_::import("contextlib").attr("contextmanager").attr("__code__");
    contextlib = py::cast<std::string>(code.attr("co_filename"));
    return true;
} catch (py::error_already_set &error) {
    error.restore();
    return false;
}

}  // namespace

ScriptLine::ScriptLine() noexcept
{
    noted = find_line();
}

ScriptLine::~ScriptLine()
{
    noted = {};
}

bool init_script(PyObject *file)
{
    static bool is_set = false;  // a provider set by a host program since then stays
    const char *const path = PyUnicode_AsUTF8(file);
    if (!path) return false;
    package.assign(path,
                   static_cast<size_t>(strrchr(path, '/') ? strrchr(path, '/') + 1 - path : 0));
    if (package.empty()) package = path;  // frozen into a program
    if (is_set) return true;
    if (!find_contextlib()) return false;
    is_set = yoke_set_stack_provider(tell, nullptr, nullptr) == YOKE_OK;
    return is_set || raise_last_error() != nullptr;
}

}  // namespace yoke_python
