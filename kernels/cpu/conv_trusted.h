// Convolutions for which oneDNN's results are correct. Only the window's form and the sizes decide.
#pragma once

#include "kernels/cpu/conv.h"

namespace yoke::cpu {

// Returns whether sizes and indices fit oneDNN's 32 bits. Offsets in bytes within an image and a weight must fit,
// too. Also checks that padding is a small part of an image: oneDNN takes time for each place of padding, and memory
// for the square of the padding.
bool is_small_enough(const Conv &conv);

// Returns whether every kernel of oneDNN 2.6 was correct for windows of this form. For all dtypes: the gradient by
// weight of 1 x 1 with a stride wrote beyond its memory with 3 channels. So oneDNN does not get such windows if a
// block of channels is not full.
// The other cases are bf16 only. All processors use the same guard, because the failing kernel depends on the
// instruction set, the layout and the sizes. Some windows of each kind were wrong, or accessed memory outside their
// tensors: windows that leave out rows or columns, between windows or within a window; windows in padding only; 1 x 1
// with stride and padding, or with a stride and a ragged block of channels on either side; forward, with more
// channels than a tile, windows that overlap with a stride along rows.
bool is_proven(const Conv &conv);

}  // namespace yoke::cpu
