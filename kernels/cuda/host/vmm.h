// Access of devices to chunks of another device. cudaDeviceEnablePeerAccess covers only plain memory. Mapped chunks
// are opened one by one, and only to devices that copy from them, because each open chunk makes launches slower.
#pragma once

#include "kernels/cuda/host/cuda.h"

namespace yoke::cuda {

// Lets `reader` read and write the chunks of the device with CUDA's number `owner`, those that are mapped later too.
// A failure is logged, and later chunks stay closed.
void open_chunks(const Device &reader, int owner);

// Forgets which devices use the device's chunks, and which chunks the device uses, because its context ends. Chunks
// mapped later are not opened.
void close_chunks(const Device &device);

}  // namespace yoke::cuda
