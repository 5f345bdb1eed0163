// Memory from the core's allocator for the length of one call.
//
// Contract: ordered on the launch's stream, so work started by the call may use the memory after the return.
#pragma once

#include "core/backend/backend.h"
#include "kernels/common/macros.h"

YOKE_KERNELS_BEGIN

// Memory of one launch, freed at the end of the scope. `kHost` is the variable in which a backend keeps the host's
// table.
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

    // Reserves memory, once in a call. 0 bytes give memory too, so data() is never null afterwards.
    yoke_status reserve(uint64_t bytes) { return take(bytes, 0); }
    // Reserves memory for a call that can also work without it. Returns YOKE_E_OOM if memory is not at hand.
    yoke_status try_reserve(uint64_t bytes) { return take(bytes, YOKE_SCRATCH_OPTIONAL); }
    void *data() const { return data_; }
    // Does not free the memory at the end of the scope: work may use it until the process ends.
    void keep() { data_ = nullptr; }
    template <class T>
    T *as() const
    {
        return static_cast<T *>(data_);
    }

private:
    yoke_status take(uint64_t bytes, uint32_t flags)
    {
        return kHost->scratch_alloc(launch_->device, bytes ? bytes : 1, launch_->stream, flags,
                                    &data_);
    }

    const yoke_launch *launch_;
    void *data_ = nullptr;
};

YOKE_KERNELS_END
