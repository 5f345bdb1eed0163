// elements.h: one element in host memory, to and from a Python number.
#pragma once

#include "bindings/python/src/runtime/error.h"

#include "yoke/types.h"

#include <cstdint>
#include <cstring>

namespace yoke_python {

// The Python number at `at`: float, int or bool, as the dtype is. A new reference.
PyObject *read_element(yoke_dtype dtype, const void *at);

bool is_floating(yoke_dtype dtype);

// The struct module's letter for a dtype, as the buffer protocol uses it; null if it has none.
const char *buffer_format(yoke_dtype dtype);

// How CUDA's array interface writes a dtype, "<f4"; null if it has no word for it.
const char *array_type(yoke_dtype dtype);

// Returns how a script converts an array whose elements have that format and are no dtype of Yoke, such as ".real".
const char *conversion_of(const char *format);

// Returns the dtype of a buffer's format and size of element; YOKE_NONE for one that Yoke has not.
yoke_dtype buffer_dtype(const char *format, int64_t itemsize);

}  // namespace yoke_python
