// init_call.h: the name of the call of init, for messages.
#pragma once

namespace yoke {

inline constexpr const char *kInitCall = "comm.init";

}  // namespace yoke
