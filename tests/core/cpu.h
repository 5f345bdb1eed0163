// cpu.h: the device of the host.
#pragma once

#include "core/select/select.h"

namespace yoke::test {

inline Device &cpu()
{
    return open_device("cpu");
}

}  // namespace yoke::test
