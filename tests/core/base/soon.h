// soon.h: a deadline that no test reaches, for what is expected to happen.
#pragma once

#include "core/base/deadline.h"

namespace yoke::test {

inline Deadline soon()
{
    return Deadline::after(20);
}

}  // namespace yoke::test
