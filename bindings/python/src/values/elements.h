// elements.h: one element in host memory, to and from a Python number.
#pragma once

#include "bindings/python/src/runtime/error.h"

#include "yoke/types.h"

#include <cstdint>
#include <cstring>

namespace yoke_python {

// Returns the Python number at `at`, a float, int or bool by the dtype: a new reference, or null with a Python error
// set.
PyObject *read_element(yoke_dtype dtype, const void *at);

bool is_floating(yoke_dtype dtype);

// Returns the struct module's letter for a dtype, as in the buffer protocol; null if there is no letter.
const char *buffer_format(yoke_dtype dtype);

// Returns the dtype's text in CUDA's array interface, "<f4"; null if there is no text.
const char *array_type(yoke_dtype dtype);

// Returns a script's conversion, such as ".real", for an array with elements of this format, which match no dtype of
// Yoke.
const char *conversion_of(const char *format);

// Returns the dtype of a buffer's format and size of element; YOKE_NONE if Yoke has no such dtype.
yoke_dtype buffer_dtype(const char *format, int64_t itemsize);

}  // namespace yoke_python
