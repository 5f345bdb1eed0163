// Runs of the fake cuDNN in this process.
#pragma once

#include "module.h"

namespace yoke::test {

// Returns the fake's answer, or -1 if no cuDNN is mapped.
inline int ask_cudnn(const char *function, int argument)
{
    void *library = dlopen(DRIVER_FOLDER "/libcudnn_graph.so.9", RTLD_NOW | RTLD_NOLOAD);
    if (!library) return -1;
    return reinterpret_cast<int (*)(int)>(dlsym(library, function))(argument);
}
// Returns the number of graphs run in TF32, or otherwise.
inline int cudnn_runs(bool tf32)
{
    return ask_cudnn("fake_cudnn_runs", tf32);
}
// Returns how often the engine of that number ran.
inline int cudnn_runs_of(int engine)
{
    return ask_cudnn("fake_cudnn_runs_of", engine);
}

}  // namespace yoke::test
