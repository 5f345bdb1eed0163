// inner_stream.h: streams on which the core itself works, and which no script can let go of: they do not keep a kind of
// devices from being disabled.
#pragma once

#include "core/device/stream.h"

namespace yoke {

// As make_stream.
Ref<Stream> make_inner_stream(Device &device);

}  // namespace yoke
