// The fake driver of a build without nlohmann-json: the driver serves FAKE_CUDA_DEVICES alone.
#include <stdexcept>

#include "tests/fakes/cuda/scenario.h"

yoke::fake::CudaMachine yoke::fake::read_scenario(const char *)
{
    throw std::runtime_error("this build reads no scenarios: it was made without nlohmann-json");
}
