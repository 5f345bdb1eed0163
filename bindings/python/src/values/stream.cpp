#include "bindings/python/src/values/stream.h"

namespace yoke_python {

// Returns the handle of an object of the class T, which `kind` describes. Returns null with TypeError or ClosedError
// set for any other object, or a closed object.
template <class T>
static auto handle_argument(PyObject *object, const Place &place, const char *kind)
    -> decltype(T::handle)
{
    const T *found = object_in<T>(object);
    if (!found) {
        raise_type(place, kind, object);
        return nullptr;
    }
    if (!found->handle)
        raise_error(YOKE_E_CLOSED, place.call,
                    "argument '%s' is %s, which is closed; it must be open", place.argument, kind);
    return found->handle;
}

yoke_stream *stream_argument(PyObject *object, const Place &place)
{
    return handle_argument<Stream>(object, place, "a Stream");
}

yoke_event *event_argument(PyObject *object, const Place &place)
{
    return handle_argument<Event>(object, place, "an Event");
}

}  // namespace yoke_python
