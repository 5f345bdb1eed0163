// soon.h: a deadline for expected events, beyond every test.
#pragma once

#include "core/base/deadline.h"

namespace yoke::test {

inline Deadline soon()
{
    return Deadline::after(20);
}

}  // namespace yoke::test
