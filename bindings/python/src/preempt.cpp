// preempt.cpp: functions missing in Python's signal module for yoke/_preempt.py: dispositions of the system, which a
// host program in C may have set, and the names of watchable signals.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/values/need.h"

#include "yoke/preempt.h"

#include <pthread.h>
#include <signal.h>

namespace yoke_python {
namespace {

using Disposition = struct sigaction;

Disposition disposition_in(const py::bytes &bytes)
{
    Disposition disposition{};
    memcpy(&disposition, PyBytes_AS_STRING(bytes.ptr()), sizeof disposition);
    return disposition;
}

py::bytes disposition_of(int signal)
{
    Disposition found{};
    sigaction(signal, nullptr, &found);
    return {reinterpret_cast<const char *>(&found), sizeof found};
}

// Returns whether a signal has the handler of a disposition. The bytes of the two may differ, because the system
// fills in only a part of the mask.
bool has_disposition(int signal, const py::bytes &bytes)
{
    const Disposition wanted = disposition_in(bytes);
    Disposition found{};
    sigaction(signal, nullptr, &found);
    return wanted.sa_flags == found.sa_flags && wanted.sa_handler == found.sa_handler;
}

void set_disposition(int signal, const py::bytes &bytes)
{
    const Disposition disposition = disposition_in(bytes);
    sigaction(signal, &disposition, nullptr);
}

// Raises a signal in this thread under a disposition, and puts the former disposition back. Returns the disposition
// after the signal, because a handler may have installed another.
py::bytes raise_under(int signal, const py::bytes &bytes)
{
    const Disposition disposition = disposition_in(bytes);
    Disposition present;
    sigset_t only, before;
    sigemptyset(&only);
    sigaddset(&only, signal);
    sigaction(signal, &disposition, &present);
    pthread_sigmask(SIG_UNBLOCK, &only, &before);
    raise(signal);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    const py::bytes after = disposition_of(signal);
    sigaction(signal, &present, nullptr);
    return after;
}

int signal_number(const py::object &name)
{
    const int32_t number = yoke_preempt_number(need_text(name, "on_preempt", "signals"));
    require(number || raise_last_error("on_preempt") != nullptr);
    return number;
}

}  // namespace

void bind_preempt(py::module_ &module)
{
    module.def("_signal_number", signal_number, py::arg("name"));
    module.def("_disposition", disposition_of, py::arg("number"));
    module.def("_has_disposition", has_disposition, py::arg("number"), py::arg("disposition"));
    module.def("_set_disposition", set_disposition, py::arg("number"), py::arg("disposition"));
    module.def("_raise_under", raise_under, py::arg("number"), py::arg("disposition"));
}

}  // namespace yoke_python
