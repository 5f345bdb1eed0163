#include "bindings/python/src/runtime/relief.h"

#include "bindings/python/src/runtime/interrupt.h"

#include "yoke/memory.h"

namespace yoke_python {

void tell_amid(py::error_already_set &error, const char *from) noexcept
{
    raise_later(error);
    if (PyErr_GivenExceptionMatches(error.type().ptr(), PyExc_Exception))
        error.discard_as_unraisable(from);
}

// gc.collect runs after gc.disable() too, which PyGC_Collect does not.
static int32_t collect_garbage(void *, yoke_device *, int64_t) noexcept
{
    return run_amid("a garbage collection for memory", [] {
        py::module_::import("gc").attr("collect")();
        return 1;
    });
}

bool init_relief()
{
    static int64_t id = 0;  // once per process, even if a host program starts Python anew
    return id || yoke_add_garbage_collector(collect_garbage, nullptr, nullptr, &id) == YOKE_OK ||
           raise_last_error() != nullptr;
}

}  // namespace yoke_python
