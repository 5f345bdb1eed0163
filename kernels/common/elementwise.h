// The arithmetic of elementwise ops, forward and backward, in the type an element is computed in.
//
// Contract of all functors
//  * A functor takes and gives compute_type<T>; the kernel loads and stores (numeric.h). One with
//    parameters holds them as doubles.
//  * Integers wrap modulo 2^bits; bool is computed as 0 or 1 in 8 bits, and what comes of it is
//    tested against 0, so + is "or", * is "and".
//  * NaN passes through every function, relu, sign, maximum and clamp included; comparisons with it
//    are false, except !=.
//  * A backward functor's arguments are the incoming gradient g and what the op saved: its result
//    `out` where that is enough, else its input x. At a kink the slope is PyTorch's.
#pragma once

#include "kernels/common/activation.h"
#include "kernels/common/arithmetic.h"
#include "kernels/common/compare.h"
