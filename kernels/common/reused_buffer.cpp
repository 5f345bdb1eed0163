#include "kernels/common/reused_buffer.h"

namespace yoke::kernels {

char *ReusedBuffer::reserve(size_t bytes)
{
    if (bytes > bytes_) {
        data_.reset();
        data_.reset(new char[bytes]);
        bytes_ = bytes;
    }
    return data_.get();
}

}  // namespace yoke::kernels
