// stream.h: the Python class Stream as an argument.
#pragma once

#include "error.h"

#include "yoke/stream.h"

namespace yoke_python {

// The handle of an argument; null with a TypeError or ClosedError set.
yoke_stream *stream_argument(PyObject *object, const Place &place);

}  // namespace yoke_python
