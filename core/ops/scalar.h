// scalar.h: how a script's number reaches a kernel: as the raw bits of an element.
#pragma once

#include "yoke/types.h"

#include <string>

namespace yoke {

// Returns the bits of a script scalar in `dtype`, in the low bytes. The core rounds floating dtypes once, to nearest
// and even. For an integer dtype a float is cut to a whole number; check_scalar_fits() has passed before.
uint64_t scalar_bits(const yoke_arg &value, yoke_dtype dtype);

// Returns a script scalar with enough digits to distinguish it from every other number.
std::string text_of(const yoke_arg &value);

// Returns whether `dtype` has a value for the scalar. An integer dtype: for a number within its bounds, cut to a
// whole number. A floating dtype: for infinities, NaN, and numbers not rounded to infinity. bool: always.
bool scalar_fits(const yoke_arg &value, yoke_dtype dtype);

// Raises YOKE_E_VALUE that names call, argument, value and bounds for an integer dtype that the scalar does not fit:
// integers of tensors wrap, but a number that a script writes is meant. Floats round, to infinity too.
void check_scalar_fits(const yoke_arg &value, yoke_dtype dtype, const char *call, const char *arg);

}  // namespace yoke
