// staging.h: tensors of a device in calls of an engine that works in the host's memory.
//
// What a call gives is copied to pinned memory behind the work that the caller's stream was given so far, on a stream
// of the group's own. The engine takes it from there when that copy is done. What the engine has made goes back on the
// same stream, and nobody's stream waits for it before the work is waited for.
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

// Failures of a group's calls that somebody was told. A failure that nobody was told is a deferred error of the device.
class FailuresOfDevices {
public:
    // Keeps the failure for the device, unless it was told. Returns its number, 0 where there is no memory to keep it.
    uint64_t keep(const Device &device, const std::exception_ptr &failure) noexcept;
    void note_told(const std::exception_ptr &failure) noexcept;
    void note_told(uint64_t failure) noexcept;  // its number

private:
    std::mutex mutex_;
    uint64_t told_ = 0;
};

// Returns a tail for a work that failed and has no device of its own: who waits for the work is told on behalf of all
// devices. Returns null if there is no memory for it.
std::unique_ptr<Work::Tail> make_telling_tail(std::shared_ptr<FailuresOfDevices> failures,
                                              std::exception_ptr failure) noexcept;

// Of a group: its streams, made at first need, and named where their kind is to be disabled.
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
    // With the list of all locked.
    bool has_stream_of(const Device &device) const noexcept;

private:
    const std::string whose_;
    const std::shared_ptr<FailuresOfDevices> failures_;
    std::vector<std::pair<const Device *, Ref<Stream>>> streams_;
};

// The tensors of one call.
class Staged final : public RefCounted {
public:
    // Which of its tensors this rank's part of the call reads and writes.
    struct Uses {
        bool in, out;
    };
    // The calling thread's current stream is the one behind which the call comes.
    static Ref<Staged> make(Staging &staging, Device &device, Uses uses);
    ~Staged() override;

    // Takes the memory for all that follows, and copies what is read. Raises OOM, and what the device failed with.
    void begin(const Tensor &in, const Tensor &out);
    // Of the host, row-major; the same where the call's are, absent where this rank does not use one.
    const Tensor &in() const noexcept { return in_; }
    const Tensor &out() const noexcept { return out_; }
    Device &device() const noexcept { return device_; }
    // Until `in` has come. False where the deadline passes before, or is_over is true.
    bool wait_until_read(Deadline deadline, const std::function<bool()> &is_over) const;
    // Copies the engine's result to the tensor, and notes that the tensor was written. Watches it by the call's
    // `in_use` until the work was waited for.
    void bring_back(const Tensor &out, const char *call, InUse in_use);
    // The calling thread's current stream comes behind that.
    void follow();
    // Of a call that has ended, once. For its work; a caller that waits is told of the failure.
    std::unique_ptr<Work::Tail> end(const std::exception_ptr &failure, bool is_told) noexcept;

private:
    class Tail;
    Staged(Staging &staging, Device &device, Uses uses);

    Staging &staging_;
    Device &device_;
    const Uses uses_;
    Ref<Stream> callers_, stream_;
    Tensor in_, out_, dense_;  // dense_: of the device, for a result that is not row-major
    Ref<Fence> read_;          // behind the copy of `in`
    std::unique_ptr<Tail> tail_;
};

namespace detail {
// Serves core/base/lent.h.
int64_t live_groups(Device &device, size_t most, std::vector<std::string> &names);
}  // namespace detail

}  // namespace yoke
