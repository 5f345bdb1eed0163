// relief.h: Python's actions if a device has no memory left: it collects garbage, and calls on_out_of_memory's
// functions. Both run Python code within a call into the library, within a Relieved (runtime/call.h).
#pragma once

#include "bindings/python/src/runtime/bind.h"

namespace yoke_python {

// Scope of Python code within a call, with Python's lock; a set Python error is kept. Calls of this code have no mark
// of the outer call, because they hold other arguments.
class Amid {
public:
    Amid() : outer_(Relieved::exchange(0)) {}
    ~Amid() { Relieved::exchange(outer_); }
    Amid(const Amid &) = delete;
    Amid &operator=(const Amid &) = delete;

private:
    const int outer_;
    const py::gil_scoped_acquire held_;
    const py::error_scope error_;
};

// Reports an error of Python code `from`. No caller can take an exception here: the call that needs memory has its
// own error.
void tell_amid(py::error_already_set &error, const char *from) noexcept;

// Runs `code` and returns its result: whether memory may have come free. Returns 0 without a run if the code could
// close an argument, and after an error.
template <class Code>
int32_t run_amid(const char *name, Code code) noexcept
{
    if (!Relieved::is_marked() || !Py_IsInitialized()) return 0;
    const Amid amid;
    try {
        return code();
    } catch (py::error_already_set &error) {
        tell_amid(error, name);
    } catch (const std::exception &) {  // no host memory for the call
    }
    return 0;
}

// Registers the garbage collector, once for the process. Returns false with a Python error set on failure.
bool init_relief();

}  // namespace yoke_python
