// staging.h: tensors of a device in calls of an engine that works in host memory.
//
// A call's input is copied to pinned memory on a stream of the group, behind the work already on the caller's stream.
// The engine reads the copy when the copy is done. The engine's result is copied back on the same stream. No other
// stream waits for the result until the work is waited for.
#pragma once

#include "core/base/deadline.h"
#include "core/base/work.h"
#include "core/comm/in_use.h"
#include "core/tensor/tensor.h"

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace yoke {

// Reported failures of a group's calls. An unreported failure becomes a deferred error of the device.
class FailuresOfDevices {
public:
    // Keeps the failure for the device, unless the failure was reported. Returns its number, or 0 if there is no
    // memory.
    uint64_t keep(const Device &device, const std::exception_ptr &failure) noexcept;
    void note_told(const std::exception_ptr &failure) noexcept;
    void note_told(uint64_t failure) noexcept;  // takes the number

private:
    std::mutex mutex_;
    uint64_t told_ = 0;
};

// Returns a tail for a failed work without a device. A wait for the work gets the report on behalf of all devices.
// Returns null if there is no memory for the tail.
std::unique_ptr<Work::Tail> make_telling_tail(std::shared_ptr<FailuresOfDevices> failures,
                                              std::exception_ptr failure) noexcept;

// Streams of a group, made at first need. If their kind of device is to be disabled, the error names the group.
class Staging {
public:
    // `whose`: "rank 0 of 2".
    Staging(std::string whose, std::shared_ptr<FailuresOfDevices> failures)
        : whose_(std::move(whose)), failures_(std::move(failures))
    {
    }
    ~Staging();
    Staging(const Staging &) = delete;
    Staging &operator=(const Staging &) = delete;

    Ref<Stream> stream_of(Device &device);
    const std::shared_ptr<FailuresOfDevices> &failures() const noexcept { return failures_; }
    const std::string &whose() const noexcept { return whose_; }
    // Expects the lock of the list of all stagings.
    bool has_stream_of(const Device &device) const noexcept;

private:
    const std::string whose_;
    const std::shared_ptr<FailuresOfDevices> failures_;
    std::vector<std::pair<const Device *, Ref<Stream>>> streams_;
};

// Tensors of a staged call.
class Staged final : public RefCounted {
public:
    // Tensors of the call that this rank's part reads and writes.
    struct Uses {
        bool in, out;
    };
    // Makes a staged call, behind the work on the calling thread's current stream.
    static Ref<Staged> make(Staging &staging, Device &device, Uses uses);
    ~Staged() override;

    // Takes the memory for all later steps, and copies the input. Raises OOM, and the device's failure.
    void begin(const Tensor &in, const Tensor &out);
    // Returns the row-major tensor in host memory. `in` and `out` are the same tensor if the call's are; a tensor
    // unused on this rank is absent.
    const Tensor &in() const noexcept { return in_; }
    const Tensor &out() const noexcept { return out_; }
    Device &device() const noexcept { return device_; }
    // Waits for the copy of `in`. Returns false if the deadline passes before, or is_over is true.
    bool wait_until_read(Deadline deadline, const std::function<bool()> &is_over) const;
    // Copies the engine's result to the tensor, and notes that the tensor was written. Watches the tensor by the
    // call's `in_use` until the wait for the work.
    void bring_back(const Tensor &out, const char *call, InUse in_use);
    // Puts the calling thread's current stream behind the result.
    void follow();
    // Ends the call, once. Returns the tail for its work. `is_told`: a waiting caller gets the failure.
    std::unique_ptr<Work::Tail> end(const std::exception_ptr &failure, bool is_told) noexcept;

private:
    class Tail;
    Staged(Staging &staging, Device &device, Uses uses);

    Staging &staging_;
    Device &device_;
    const Uses uses_;
    Ref<Stream> callers_, stream_;
    Tensor in_, out_, dense_;  // dense_: on the device, for a result that is not row-major
    Ref<Fence> read_;          // reached after the copy of `in`
    std::unique_ptr<Tail> tail_;
};

namespace detail {
// Serves core/base/lent.h.
int64_t live_groups(Device &device, size_t most, std::vector<std::string> &names);
}  // namespace detail

}  // namespace yoke
