#include "bindings/python/src/values/work.h"

#include "bindings/python/src/runtime/interrupt.h"
#include "bindings/python/src/values/need.h"

#include <memory>

namespace yoke_python {

void Work::wait(const py::object &timeout)
{
    const double seconds = timeout.is_none() ? -1 : need_float(timeout, "wait", "timeout");
    if (!timeout.is_none() && !(seconds >= 0))
        require(raise_error(YOKE_E_VALUE, "wait",
                            "argument 'timeout' is %R; it must be 0 seconds or more, or None",
                            timeout.ptr()) != nullptr);
    const auto wait = seconds < 0 ? yoke_work_follow : yoke_work_wait;
    wait_in([&] { return wait(handle_, seconds); });
}

py::tuple Work::progress() const
{
    int64_t bytes = 0, of = 0;
    check(yoke_work_progress(handle_, &bytes, &of));
    return py::make_tuple(bytes, of);
}

yoke_work *work_in(py::handle work, const char *call, const char *argument)
{
    Work *const known = object_in<Work>(work.ptr());
    if (!known) require(raise_type({call, argument}, "a Work", work.ptr()) != nullptr);
    return known->handle();
}

py::object object_of(yoke_work *work)
{
    return py::cast(std::make_unique<Work>(work));
}

}  // namespace yoke_python
