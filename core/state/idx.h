// idx.h: the IDX format of MNIST and its kin: one array per file, big-endian, often compressed by
// gzip.
//
//   bytes 0-1   zero
//   byte  2     element type: 0x08 uint8, 0x09 int8, 0x0B int16, 0x0C int32, 0x0D float32,
//               0x0E float64
//   byte  3     number of axes
//   then        one 32-bit size per axis, then the elements, row-major
#pragma once

#include "core/tensor/tensor.h"

namespace yoke {

// Reads a plain or gzip-compressed IDX file into a new tensor on `cpu`, which must be a device of kind "cpu".
//
// YOKE_E_IO: the file cannot be opened or read, is no regular file, ends early, or its gzip stream is damaged
// (checksums are verified). YOKE_E_VALUE: the bytes are no IDX array for a tensor. Every message names the path.
//
// The header is checked before memory is allocated. A plain file must be as long as its header says, and gzip cannot
// shrink data below 1/1032. So a small file with a damaged header never causes a larger allocation.
Tensor read_idx(const char *path, Device &cpu);

}  // namespace yoke
