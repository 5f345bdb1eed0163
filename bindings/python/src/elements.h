// elements.h: one element in host memory, to and from a Python number.
#pragma once

#include "error.h"

#include "yoke/types.h"

#include <cstdint>
#include <cstring>

namespace yoke_python {

// The Python number at `at`: float, int or bool, as the dtype is. A new reference.
PyObject *read_element(yoke_dtype dtype, const void *at);

inline bool is_floating(yoke_dtype dtype)
{
    return (dtype >= YOKE_F64 && dtype <= YOKE_BF16) || dtype == YOKE_F8_E4M3 ||
           dtype == YOKE_F8_E5M2;
}

// The struct module's letter for a dtype, as the buffer protocol uses it; null if it has none.
const char *buffer_format(yoke_dtype dtype);

// The dtype of a buffer's format and size of element; YOKE_NONE for one that Yoke has not.
yoke_dtype buffer_dtype(const char *format, int64_t itemsize);

}  // namespace yoke_python
