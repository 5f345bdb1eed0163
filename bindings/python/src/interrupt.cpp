#include "interrupt.h"

#include "yoke/runtime.h"

#include <utility>

namespace yoke_python {

namespace {

thread_local Waiting *waiting = nullptr;

// As Python sees it: a forked child's only thread is its main one.
bool is_main_thread()
try {
    const py::object ident = py::module_::import("threading").attr("main_thread")().attr("ident");
    return !ident.is_none() && py::cast<unsigned long>(ident) == PyThread_get_thread_ident();
} catch (const py::error_already_set &) {  // the interpreter ends
    return false;
}

}  // namespace

Waiting::Waiting() : state_(PyThreadState_Get()), outer_(std::exchange(waiting, this)) {}

Waiting::~Waiting()
{
    waiting = outer_;
    Py_XDECREF(kind_);
    Py_XDECREF(error_);
    Py_XDECREF(trace_);
}

void Waiting::check(yoke_status status)
{
    if (kind_) {
        PyErr_Restore(std::exchange(kind_, nullptr), std::exchange(error_, nullptr),
                      std::exchange(trace_, nullptr));
        throw py::error_already_set();
    }
    yoke_python::check(status);
}

// What is raised waits for the end of the call, which may run other code of Python's before.
void Waiting::run_handlers()
{
    PyEval_RestoreThread(state_);
    if (!std::exchange(is_known_, true)) is_main_ = is_main_thread();
    if (is_main_ && PyErr_CheckSignals() != 0) PyErr_Fetch(&kind_, &error_, &trace_);
    PyEval_SaveThread();
}

int32_t Waiting::hear(void *)
{
    Waiting *const here = waiting;
    if (!here || (here->is_known_ && !here->is_main_)) return 0;
    if (!here->kind_) here->run_handlers();
    return here->kind_ != nullptr;
}

bool init_interrupts()
{
    return yoke_set_interrupt_hook(Waiting::hear, nullptr, nullptr) == YOKE_OK ||
           raise_last_error() != nullptr;
}

}  // namespace yoke_python
