// stream.h: the Python classes Stream and Event as arguments.
#pragma once

#include "bindings/python/src/runtime/error.h"

#include "yoke/stream.h"

namespace yoke_python {

// Return the handle of an argument; null with a TypeError or ClosedError set.
yoke_stream *stream_argument(PyObject *object, const Place &place);
yoke_event *event_argument(PyObject *object, const Place &place);

}  // namespace yoke_python
