// What is told of cuDNN, whether the module was built with its headers or without.
#pragma once

#include <cstdint>

namespace yoke::cuda {

// "" where cuDNN serves; else one sentence: what is wrong, where, and what to do. Looks for it at the first call.
const char *cudnn_why_unavailable();

// 91900 is 9.19.0; 0 where cuDNN cannot serve.
int64_t cudnn_version();

}  // namespace yoke::cuda
