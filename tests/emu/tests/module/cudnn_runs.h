// What the fake cuDNN ran in this process.
#pragma once

#include "module.h"

namespace yoke::test {

// Graphs that it ran, in TF32 or not; -1 where no cuDNN is mapped.
inline int cudnn_runs(bool tf32)
{
    void *library = dlopen(DRIVER_FOLDER "/libcudnn_graph.so.9", RTLD_NOW | RTLD_NOLOAD);
    if (!library) return -1;
    return reinterpret_cast<int (*)(int)>(dlsym(library, "fake_cudnn_runs"))(tf32);
}

}  // namespace yoke::test
