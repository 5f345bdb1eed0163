// values.h: float64 values of a tensor on any device, and a device over the tests' backend.
#pragma once

#include "core/backend/registry.h"
#include "core/ops/ops.h"
#include "core/select/select.h"
#include "core/tensor/tensor.h"
#include "tests/core/fake_backend.h"

#include <vector>

namespace yoke::test {

inline std::vector<double> values_of(const Tensor &x)
{
    std::vector<double> values(static_cast<size_t>(x->numel));
    copy_to_host(*ops::contiguous(*x), values.data(), values.size() * sizeof(double), "a test");
    return values;
}

inline Device &fake_device()
{
    register_backend("fake", get_fake);
    return open_device("fake");
}

}  // namespace yoke::test
