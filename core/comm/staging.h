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
    // Makes the failure a deferred error of the device, unless the failure was reported. Returns the failure's
    // number, or 0 if there is no memory.
    uint64_t keep(const Device &device, const std::exception_ptr &failure) noexcept;
    void note_told(const std::exception_ptr &failure) noexcept;
    void note_told(uint64_t failure) noexcept;  // takes the number

private:
    std::mutex mutex_;
    uint64_t told_ = 0;
};

// Returns a tail for a failed work without a device. When a caller waits for the work and gets the failure, the tail
// notes the failure as reported. Returns null if there is no memory for the tail.
std::unique_ptr<Work::Tail> make_telling_tail(std::shared_ptr<FailuresOfDevices> failures,
                                              std::exception_ptr failure) noexcept;

// Streams of a group, made at first need. If their kind of device is to be disabled, the error names the group.
class Staging {
public:
    // Makes a staging without streams. `whose` names the group's rank: "rank 0 of 2".
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
    // Returns whether the group has a stream of the device. The caller holds the lock of the list of all stagings.
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
    // Makes a staged call, whose copies come behind the work on the calling thread's current stream.
    static Ref<Staged> make(Staging &staging, Device &device, Uses uses);
    ~Staged() override;

    // Takes the memory for all later steps, and begins to copy the input to pinned host memory. Raises OOM, and the
    // device's failure.
    void begin(const Tensor &in, const Tensor &out);
    // Returns the input in host memory, row-major. `in` and `out` are the same tensor if the call's are; a tensor
    // unused on this rank is absent.
    const Tensor &in() const noexcept { return in_; }
    const Tensor &out() const noexcept { return out_; }
    Device &device() const noexcept { return device_; }
    // Waits until the copy of `in` is done, and returns true. Returns false if the deadline passes before, or
    // is_over() is true.
    bool wait_until_read(Deadline deadline, const std::function<bool()> &is_over) const;
    // Copies the engine's result from host memory to the tensor, and notes that the tensor was written. Watches the
    // tensor by the call's `in_use` until the wait for the work.
    void bring_back(const Tensor &out, const char *call, InUse in_use);
    // Puts the calling thread's current stream behind the result.
    void follow();
    // Ends the call, once, and returns the tail for its work. `failure` is null for a call that ended well.
    // `is_told`: a waiting caller gets the failure, so the device does not report it.
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
// Adds the names of groups with a stream or a communicator on the device to `names`, at most `most`. Returns the
// number of all such groups. Serves core/base/lent.h.
int64_t live_groups(Device &device, size_t most, std::vector<std::string> &names);
}  // namespace detail

}  // namespace yoke
