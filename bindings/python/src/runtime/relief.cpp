#include "bindings/python/src/runtime/relief.h"

#include "bindings/python/src/runtime/bind.h"
#include "bindings/python/src/runtime/interrupt.h"

#include "yoke/memory.h"

#include <memory>
#include <utility>

namespace yoke_python {

namespace {

thread_local int relieved_calls = 0;

// Around Python code amid a call: calls that this code makes are none of the outer one's.
class Amid {
public:
    Amid() : outer_(std::exchange(relieved_calls, 0)) {}
    ~Amid() { relieved_calls = outer_; }
    Amid(const Amid &) = delete;
    Amid &operator=(const Amid &) = delete;

private:
    const int outer_;
    const py::gil_scoped_acquire held_;
    const py::error_scope error_;
};

// Tells what Python code has raised. Nobody can take an exception here: the call that needs memory has one of its own.
void tell(py::error_already_set &error, const char *from) noexcept
{
    raise_later(error);
    if (PyErr_GivenExceptionMatches(error.type().ptr(), PyExc_Exception))
        error.discard_as_unraisable(from);
}

// Runs `code`, which returns whether memory may have come free, unless it could close an argument.
template <class Code>
int32_t run_amid(const char *name, Code code) noexcept
{
    if (relieved_calls == 0 || !Py_IsInitialized()) return 0;
    const Amid amid;
    try {
        return code();
    } catch (py::error_already_set &error) {
        tell(error, name);
    } catch (const std::exception &) {  // no host memory for the call
    }
    return 0;
}

// gc.collect runs after gc.disable() too, which PyGC_Collect does not.
int32_t collect_garbage(void *, yoke_device *, int64_t) noexcept
{
    return run_amid("a garbage collection for memory", [] {
        py::module_::import("gc").attr("collect")();
        return 1;
    });
}

int32_t ask_function(void *function, yoke_device *device, int64_t bytes) noexcept
{
    return run_amid("a function of on_out_of_memory", [&] {
        const py::object given =
            (*static_cast<py::object *>(function))(taken(device_object(device)), bytes);
        const int truth = PyObject_IsTrue(given.ptr());
        if (truth < 0) throw py::error_already_set();
        return truth;
    });
}

void drop_function(void *function)
{
    if (!Py_IsInitialized()) return;
    const py::gil_scoped_acquire held;
    delete static_cast<py::object *>(function);
}

int64_t add_function(const py::object &function)
{
    if (!PyCallable_Check(function.ptr()))
        require(raise_type({"on_out_of_memory", "fn"}, "a function (device, bytes)",
                           function.ptr()) != nullptr);
    auto held = std::make_unique<py::object>(function);
    int64_t id = 0;
    check(yoke_on_out_of_memory(ask_function, held.get(), drop_function, &id));
    held.release();
    return id;
}

}  // namespace

Relieved::Relieved()
{
    ++relieved_calls;
}

Relieved::~Relieved()
{
    --relieved_calls;
}

bool init_relief()
{
    static int64_t id = 0;  // one for the process, also where a host starts Python anew
    return id || yoke_add_garbage_collector(collect_garbage, nullptr, nullptr, &id) == YOKE_OK ||
           raise_last_error() != nullptr;
}

void bind_relief(py::module_ &module)
{
    module.def("_add_on_out_of_memory", add_function, py::arg("fn"));
    module.def("_remove_on_out_of_memory", [](int64_t id) {
        yoke_status status = YOKE_OK;
        {
            const ReleaseGil release;
            status = yoke_remove_on_out_of_memory(id);
        }
        check(status);
    });
}

}  // namespace yoke_python
