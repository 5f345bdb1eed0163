// init_call.h: the name of the call that meets the ranks of a job, for messages.
#pragma once

namespace yoke {

inline constexpr const char *kInitCall = "comm.init";

}  // namespace yoke
