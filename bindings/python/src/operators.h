// operators.h: what +, ==, &, in and their like mean between tensors and numbers.
//
// An operator is an op. A NumPy array is a tensor of its dtype (operands.h). Where one side is no tensor, number or
// array, the other class is asked, as Python's rules say; == and != then fall back to identity.
#pragma once

#include "bindings/python/src/values/convert.h"
#include "bindings/python/src/values/invoke.h"

namespace yoke_python {

constexpr int kOperatorCount = 20;
extern const PyType_Slot operator_slots[kOperatorCount];

}  // namespace yoke_python
