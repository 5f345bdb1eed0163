// Memory of the host's allocator for the length of one call.
//
// Contract: ordered on the launch's stream, so that what was started may still use it when the call has returned.
#pragma once

#include "core/backend/backend.h"
#include "kernels/common/macros.h"

YOKE_KERNELS_BEGIN

// `kHost` is the variable in which a backend keeps the host's table.
template <const yoke_host *&kHost>
class Scratch {
public:
    explicit Scratch(const yoke_launch *launch) : launch_(launch) {}
    ~Scratch()
    {
        if (data_) kHost->scratch_free(launch_->device, data_, launch_->stream);
    }
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;

    // Once; of nothing too, so that what was reserved is never null.
    yoke_status reserve(uint64_t bytes)
    {
        return kHost->scratch_alloc(launch_->device, bytes ? bytes : 1, launch_->stream, &data_);
    }
    void *data() const { return data_; }
    template <class T>
    T *as() const
    {
        return static_cast<T *>(data_);
    }

private:
    const yoke_launch *launch_;
    void *data_ = nullptr;
};

YOKE_KERNELS_END
