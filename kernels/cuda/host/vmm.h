// Access of devices to the chunks of another one. cudaDeviceEnablePeerAccess is for plain memory alone: mapped chunks
// are opened one by one, and only to devices that copy from them, since each costs launches time.
#pragma once

#include "kernels/cuda/host/cuda.h"

namespace yoke::cuda {

// Lets `reader` read and write the chunks of the device with CUDA's number `owner`, those that are mapped later too.
// A failure is a line in the log.
void open_chunks(const Device &reader, int owner);

// The device's context ends: nobody reads its chunks, and it reads nobody's.
void close_chunks(const Device &device);

}  // namespace yoke::cuda
