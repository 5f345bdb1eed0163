// stream.h: the Python classes Stream and Event as arguments; stream.cpp of the folder above binds them.
#pragma once

#include "bindings/python/src/runtime/bind.h"

#include "yoke/stream.h"

#include <utility>

namespace yoke_python {

// Object of Python with a reference to a handle; null after close().
template <class Handle, Handle *(*kRetain)(Handle *), void (*kRelease)(Handle *)>
struct Owner : Bound {
    Handle *handle = nullptr;

    explicit Owner(Handle *owned) : handle(owned) {}
    Owner(const Owner &other) : Bound(), handle(kRetain(other.handle)) {}
    Owner &operator=(const Owner &) = delete;
    ~Owner() { kRelease(handle); }
    void close() { kRelease(std::exchange(handle, nullptr)); }
};
using Stream = Owner<yoke_stream, yoke_stream_retain, yoke_stream_release>;
using Event = Owner<yoke_event, yoke_event_retain, yoke_event_release>;

// Return the handle of an argument; null with a TypeError or ClosedError set.
yoke_stream *stream_argument(PyObject *object, const Place &place);
yoke_event *event_argument(PyObject *object, const Place &place);

}  // namespace yoke_python
