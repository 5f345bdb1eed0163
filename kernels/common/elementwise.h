// Arithmetic of elementwise ops, forward and backward, in the computing type of an element.
//
// Contract of all functors
//  * A functor takes and gives compute_type<T>. The kernel loads and stores (numeric.h). Parameters of a functor are
//    doubles.
//  * Integers wrap modulo 2^bits. A bool is computed as 0 or 1 in 8 bits, and the result is tested against 0. So + is
//    "or", and * is "and".
//  * NaN passes through every function, also relu, sign, maximum and clamp. Comparisons with NaN are false, except
//    !=.
//  * A backward functor takes the incoming gradient g and the tensors saved by the op: the result `out` if it
//    suffices, else the input x. At a kink the slope is PyTorch's.
#pragma once

#include "kernels/common/activation.h"
#include "kernels/common/arithmetic.h"
#include "kernels/common/bits.h"
#include "kernels/common/compare.h"
#include "kernels/common/functions.h"
#include "kernels/common/quotient.h"
