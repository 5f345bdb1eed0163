#include "bindings/python/src/runtime/interrupt.h"

#include "yoke/runtime.h"

#include <atomic>
#include <utility>

#include <pthread.h>

namespace yoke_python {

namespace {

thread_local Waiting *innermost = nullptr;

constexpr const char *kNoText = "an error without a text";

// Returns whether an error is an Exception, unlike Ctrl-C and the end of the script.
bool is_exception(PyObject *raised)
{
    return PyObject_TypeCheck(raised, reinterpret_cast<PyTypeObject *>(PyExc_Exception));
}

void raise_anew(PyObject *exception)
{
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(exception)), exception);
}

// Thread in which Python handles signals, reported by Python itself; 0: not known yet, so any thread asks. A call of
// Python code, such as threading's, would run a due handler.
std::atomic<unsigned long> main_thread{0};

int note_main_thread(void *)
{
    main_thread = PyThread_get_thread_ident();
    return 0;
}

// Notes the main thread anew: in a forked child the only thread is the main thread.
void note_after_fork()
{
    note_main_thread(nullptr);
}

bool is_other_thread()
{
    const unsigned long known = main_thread;
    return known && known != PyThread_get_thread_ident();
}

// Raises the exception in a pending call of Python, and releases the exception.
int raise_pending(void *raised)
{
    auto *const value = static_cast<PyObject *>(raised);
    raise_anew(value);
    Py_DECREF(value);
    return -1;
}

}  // namespace

Waiting::Waiting() : state_(PyThreadState_Get()), outer_(std::exchange(innermost, this)) {}

Waiting::~Waiting()
{
    innermost = outer_;
    Py_XDECREF(kind_);
    Py_XDECREF(error_);
    Py_XDECREF(trace_);
    Py_XDECREF(kept_);
}

void Waiting::check(yoke_status status)
{
    if (kind_) {
        PyErr_Restore(std::exchange(kind_, nullptr), std::exchange(error_, nullptr),
                      std::exchange(trace_, nullptr));
        throw py::error_already_set();
    }
    if (kept_ && (leaves_ == kRaised || !is_exception(kept_))) {
        raise_anew(kept_);
        throw py::error_already_set();
    }
    if (status != YOKE_OK && kept_) raise_as_cause();
    yoke_python::check(status);
}

void Waiting::raise_as_cause()
{
    raise_last_error();
    PyObject *kind = nullptr, *error = nullptr, *trace = nullptr;
    PyErr_Fetch(&kind, &error, &trace);
    PyErr_NormalizeException(&kind, &error, &trace);
    PyException_SetCause(error, std::exchange(kept_, nullptr));  // takes the reference
    PyErr_Restore(kind, error, trace);
    throw py::error_already_set();
}

// Keeps the first error for the innermost wait, unless a later error has to leave the call.
void Waiting::remember(const py::error_already_set &error, Leaves leaves) noexcept
{
    PyObject *const value = error.value().ptr();
    if (!innermost || !value ||
        (innermost->kept_ && (!is_exception(innermost->kept_) || is_exception(value))))
        return;
    if (error.trace()) PyException_SetTraceback(value, error.trace().ptr());
    Py_XDECREF(std::exchange(innermost->kept_, new_reference(value)));
    innermost->leaves_ = leaves;
}

std::string Waiting::keep(const std::exception &error, Leaves leaves) noexcept
try {
    const auto *const raised = dynamic_cast<const py::error_already_set *>(&error);
    if (!raised) return error.what();
    remember(*raised, leaves);
    const auto name = py::cast<std::string>(raised->type().attr("__name__")),
               text = py::cast<std::string>(py::str(raised->value()));
    return text.empty() ? name : name + ": " + text;
} catch (const py::error_already_set &other) {
    remember(other, leaves);
    return kNoText;
} catch (const std::exception &) {
    return kNoText;
}

// Runs due handlers. An error is kept until the end of the call, as the call may run other Python code first.
void Waiting::run_handlers()
{
    PyEval_RestoreThread(state_);
    if (PyErr_CheckSignals() != 0) PyErr_Fetch(&kind_, &error_, &trace_);
    PyEval_SaveThread();
}

int32_t Waiting::hear(void *)
{
    Waiting *const here = innermost;
    if (!here || is_other_thread()) return 0;
    if (!here->kind_) here->run_handlers();
    return here->kind_ != nullptr;
}

void raise_later(const py::error_already_set &error) noexcept
{
    PyObject *const value = error.value().ptr();
    if (!value || is_exception(value) || is_other_thread()) return;
    if (Py_AddPendingCall(raise_pending, new_reference(value)) == 0) return;
    raise_anew(value);
    PyErr_WriteUnraisable(nullptr);
    Py_DECREF(value);
}

bool init_interrupts()
{
    static const int guarded = pthread_atfork(nullptr, nullptr, note_after_fork);
    if (guarded) return PyErr_NoMemory() != nullptr;
    main_thread = 0;  // a host program may have started Python anew, in another thread
    Py_AddPendingCall(note_main_thread,
                      nullptr);  // in the main thread; never, if full
    return yoke_set_interrupt_hook(Waiting::hear, nullptr, nullptr) == YOKE_OK ||
           raise_last_error() != nullptr;
}

}  // namespace yoke_python
