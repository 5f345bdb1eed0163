// Which convolutions oneDNN is trusted with; the form of the window and sizes alone decide.
#pragma once

#include "kernels/cpu/conv.h"

namespace yoke::cpu {

// Whether sizes and indices fit the 32 bits in which oneDNN keeps them, and offsets within an image and a weight those
// in which its code holds them, in bytes; and whether padding is no great part of what it goes through: oneDNN takes
// time for each place of it, and memory for their square.
bool is_small_enough(const Conv &conv);

// Whether every kernel of oneDNN 2.6 was right for windows of this form. Of all dtypes the gradient by weight of 1 x 1
// with a stride wrote behind its memory with 3 channels; blocks of channels that are not full are left to others. What
// follows is of bf16. Each processor takes the same guard:
// which kernel fails depends on the instruction set, the layout and the sizes. Some of each kind were wrong, or read
// and wrote beside their memory: windows that leave rows or columns out, between them or within; those that meet
// padding alone; 1 x 1 with stride and padding, or with a stride and a ragged block of channels on either side; and
// forward, of more than a tile's channels, those that overlap with a stride along rows.
bool is_proven(const Conv &conv);

}  // namespace yoke::cpu
