// stream.cpp: the classes Stream and Event, and a thread's current stream.
#include "bindings/python/src/values/stream.h"
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/runtime/interrupt.h"
#include "bindings/python/src/values/device.h"
#include "bindings/python/src/values/modes.h"
#include "bindings/python/src/values/need.h"

#include "yoke/device.h"
#include "yoke/stream.h"

namespace yoke_python {
namespace {

template <class T>
auto live(const T &object, const char *call)
{
    if (!object.handle)
        require(raise_error(YOKE_E_CLOSED, call,
                            "the %s is closed; create a new object, or call close() later",
                            std::is_same_v<T, Stream> ? "stream" : "event") != nullptr);
    return object.handle;
}

template <class T>
T &need_object(py::handle value, const char *call, const char *argument)
{
    const bool is_stream = std::is_same_v<T, Stream>;
    T *object = object_in<T>(value.ptr());
    if (!object)
        require(raise_type({call, argument}, is_stream ? "a Stream" : "an Event", value.ptr()) !=
                nullptr);
    return *object;
}

yoke_stream *need_stream(py::handle value, const char *call, const char *argument)
{
    return live(need_object<Stream>(value, call, argument), call);
}

yoke_event *need_event(py::handle value, const char *call, const char *argument)
{
    return live(need_object<Event>(value, call, argument), call);
}

// Waits with the GIL released; another thread may close the object meanwhile.
template <class T>
void wait(const T &object, yoke_status (*synchronize)(decltype(object.handle)))
{
    live(object, "synchronize");
    const T held(object);
    wait_in([&] { return synchronize(held.handle); });
}

template <class T>
bool ask(const T &object, yoke_status (*query)(decltype(object.handle), int32_t *))
{
    int32_t yes = 0;
    check(query(live(object, "query"), &yes));
    return yes == 1;
}

Stream make_stream(const py::object &device, const py::object &priority)
{
    const int64_t wanted = need_int(priority, "Stream", "priority");
    yoke_stream *made = nullptr;
    if (wanted < INT32_MIN || wanted > INT32_MAX)
        require(raise_error(YOKE_E_VALUE, "Stream",
                            "argument 'priority' is %lld; it must fit in 32 bits",
                            static_cast<long long>(wanted)) != nullptr);
    check(yoke_stream_create(need_device(device, "Stream"), static_cast<int32_t>(wanted), &made));
    return Stream(made);
}

Event make_event(const py::object &timing)
{
    yoke_event *made = nullptr;
    check(yoke_event_create(need_bool(timing, "Event", "timing"), &made));
    return Event(made);
}

Stream current_stream(const py::object &device)
{
    yoke_stream *current = nullptr;
    sync_modes();
    check(yoke_current_stream(need_device(device, "current_stream"), &current));
    return Stream(current);
}

Stream wrap_stream(const py::object &native, const py::object &device)
{
    yoke_stream *made = nullptr;
    const int64_t handle = need_int(native, "wrap_stream", "native");
    check(yoke_stream_wrap(reinterpret_cast<void *>(static_cast<intptr_t>(handle)),
                           need_device(device, "wrap_stream"), &made));
    return Stream(made);
}

py::object record_event(const Stream &stream, const py::object &event)
{
    const py::object recorded = event.is_none() ? py::cast(make_event(py::bool_(false))) : event;
    check(yoke_event_record(need_event(recorded, "record_event", "event"),
                            live(stream, "record_event")));
    return recorded;
}

void wait_stream(const Stream &stream, const py::object &other)
{
    yoke_stream *waiting = live(stream, "wait_stream");
    yoke_stream *first = need_stream(other, "wait_stream", "stream");
    const Event event = make_event(py::bool_(false));
    check(yoke_event_record(event.handle, first));
    check(yoke_stream_wait_event(waiting, event.handle));
}

void record(const Event &event, const py::object &stream)
{
    check(yoke_event_record(live(event, "record"),
                            stream.is_none() ? nullptr : need_stream(stream, "record", "stream")));
}

void make_wait(const Event &event, const py::object &stream)
{
    yoke_event *first = live(event, "wait");
    const Stream waiting = stream.is_none() ? current_stream(py::none())
                                            : need_object<Stream>(stream, "wait", "stream");
    check(yoke_stream_wait_event(live(waiting, "wait"), first));
}

double elapsed_time(const Event &start, const py::object &end)
{
    double seconds = 0;
    yoke_event *last = need_event(end, "elapsed_time", "end");
    check(yoke_event_elapsed(live(start, "elapsed_time"), last, &seconds));
    return seconds * 1e3;
}

uintptr_t native_of(const Stream &stream)
{
    return reinterpret_cast<uintptr_t>(yoke_stream_handle(live(stream, "handle")));
}

py::object device_of(const Stream &stream)
{
    return taken(device_object(yoke_stream_device(live(stream, "device"))));
}

py::object equal(const Stream &stream, const py::object &other)
{
    const Stream *found = object_in<Stream>(other.ptr());
    if (!found) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
    const Stream &second = *found;
    return py::bool_(
        stream.handle == second.handle ||
        (stream.handle && second.handle && yoke_stream_equal(stream.handle, second.handle) == 1));
}

void bind_stream_class(py::module_ &module)
{
    bound_class<Stream>(
        module, "Stream",
        "Queue of work on a device, which runs in order. `with yoke.stream(s):` puts the work of a thread into the stream. Streams of greater priority run first.")
        .def(py::init([](const py::args &args, const py::kwargs &keywords) {
            const py::int_ normal(0);
            PyObject *device = Py_None, *priority = normal.ptr();
            read_call("Stream", {"device", "priority"}, args, keywords, {&device, &priority});
            return make_stream(py::reinterpret_borrow<py::object>(device),
                               py::reinterpret_borrow<py::object>(priority));
        }))
        .def_property_readonly(
            "handle", native_of,
            "Handle of the stream in the device's API, an int; 0 for the default stream.")
        .def_property_readonly("device", device_of, "Device of the stream.")
        .def(
            "synchronize", [](const Stream &s) { wait(s, yoke_stream_synchronize); },
            "Waits until all work of the stream has finished.")
        .def(
            "query", [](const Stream &s) { return ask(s, yoke_stream_query); },
            "Returns whether all work of the stream has finished.")
        .def(
            "wait_event",
            [](const Stream &s, const py::object &event) {
                yoke_stream *waiting = live(s, "wait_event");
                check(yoke_stream_wait_event(waiting, need_event(event, "wait_event", "event")));
            },
            py::arg("event"), "Makes later work of this stream start after the event.")
        .def("wait_stream", wait_stream, py::arg("stream"),
             "Makes later work of this stream start after the earlier work of `stream`.")
        .def(
            "record_event", record_event, py::arg("event") = py::none(),
            "Records an event after the earlier work of this stream, and returns the event. Without an argument a new event is created.")
        .def("close", &Stream::close,
             "Releases the stream now; any later use of this object is a ClosedError.")
        .def("__eq__", equal)
        .def("__hash__",
             [](const Stream &s) {
                 return std::hash<const void *>()(yoke_stream_device(live(s, "hash"))) ^
                        std::hash<uintptr_t>()(native_of(s));
             })
        .def("__repr__", [](const Stream &s) {
            if (!s.handle) return py::str("<yoke.Stream, closed>");
            return py::str("<yoke.Stream of {}, handle {:#x}>").format(device_of(s), native_of(s));
        });
}

void bind_event_class(py::module_ &module)
{
    bound_class<Event>(
        module, "Event",
        "Point in the work of a stream. An event belongs to the device of its first record, and counts as reached before its first record.")
        .def(py::init([](const py::args &args, const py::kwargs &keywords) {
            PyObject *timing = Py_False;
            read_call("Event", {"timing"}, args, keywords, {&timing});
            return make_event(py::reinterpret_borrow<py::object>(timing));
        }))
        .def("record", record, py::arg("stream") = py::none(),
             "Records this event after the earlier work of a stream (default: the current stream).")
        .def("wait", make_wait, py::arg("stream") = py::none(),
             "Makes later work of a stream (default: the current stream) start after this event.")
        .def(
            "query", [](const Event &e) { return ask(e, yoke_event_query); },
            "Returns whether the event was reached.")
        .def(
            "synchronize", [](const Event &e) { wait(e, yoke_event_synchronize); },
            "Waits until the event is reached.")
        .def(
            "elapsed_time", elapsed_time, py::arg("end"),
            "Returns the milliseconds from this event to `end`. Both events must have timing=True and must be reached.")
        .def("close", &Event::close,
             "Releases the event now; any later use of this object is a ClosedError.");
}

}  // namespace

void bind_streams(py::module_ &module)
{
    bind_stream_class(module);
    bind_event_class(module);
    module.def("_stream_again", [](const py::object &s) {
        return Stream(yoke_stream_retain(need_stream(s, "stream", "stream")));
    });
    module.def("current_stream", current_stream, py::arg("device") = py::none(),
               "Returns the current stream of this thread on a device.");
    module.def(
        "set_stream",
        [](const py::object &s) {
            yoke_stream *stream = need_stream(s, "set_stream", "stream");
            const py::object held = py::cast(Stream(yoke_stream_retain(stream)));
            if (!override_mode("stream", held, yoke_stream_device(stream)))
                check(yoke_set_stream(stream));
        },
        py::arg("stream"), "Sets the current stream of this thread on the device of the stream.");
    module.def(
        "wrap_stream", wrap_stream, py::arg("native"), py::arg("device") = py::none(),
        "Returns a Stream for another library's stream, given as its handle, an int: 0 is the default stream, on CUDA 1 too; 2, the default stream of each thread, is an error. The other library keeps the stream alive while this object exists, and destroys it.");
}

}  // namespace yoke_python
