// scenario.h: the devices of the fake driver from a scenario of tests/fakes/edge.
#pragma once

#include <vector>

#include "tests/fakes/cuda/machine.h"

namespace yoke::fake {

struct CudaMachine {
    int problem = 0, version = 13000;  // why cuInit fails; CUDA version of the driver
    std::vector<fake_device> devices;
};

// Throws where the file cannot be read.
CudaMachine read_scenario(const char *path);

}  // namespace yoke::fake
