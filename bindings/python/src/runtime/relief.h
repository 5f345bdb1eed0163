// relief.h: what Python does when a device has no memory left: it collects garbage, and asks on_out_of_memory's
// functions.
//
// Both run Python code amid a call into the library, and that code may close any tensor. So they run only within a
// Relieved: a call that holds its arguments.
#pragma once

#include "yoke/types.h"

namespace yoke_python {

// Marks calls of this thread in its scope as such.
class Relieved {
public:
    Relieved();
    ~Relieved();
    Relieved(const Relieved &) = delete;
    Relieved &operator=(const Relieved &) = delete;
};

template <class Call>
yoke_status with_relief(Call call)
{
    const Relieved relieved;
    return call();
}

// Registers the garbage collector, once for the process. False with a Python error set on failure.
bool init_relief();

}  // namespace yoke_python
