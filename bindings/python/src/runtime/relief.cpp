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

// Collects garbage by gc.collect, which runs after gc.disable() too, unlike PyGC_Collect. Returns 1, or 0 if no
// collection ran.
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
