#include "core/comm/staging.h"

#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/base/immortal.h"
#include "core/comm/await_fence.h"
#include "core/comm/late/device_engine.h"
#include "core/device/deferred_error.h"
#include "core/device/inner_stream.h"
#include "core/ops/ops.h"

#include <algorithm>

namespace yoke {

// ---- Failures ---------------------------------------------------------------------------------------------------

namespace {

struct Told {
    yoke_status status;
    std::string text;
    uint64_t number;
};

Told told_by(const std::exception_ptr &failure)
{
    try {
        std::rethrow_exception(failure);
    } catch (const Error &error) {
        return {error.status(), error.what(), error.number()};
    } catch (const std::bad_alloc &) {
        return {YOKE_E_OOM, "not enough host memory for a collective", new_failure_number()};
    } catch (const std::exception &error) {
        return {YOKE_E_INTERNAL, error.what(), new_failure_number()};
    }
}

}  // namespace

uint64_t FailuresOfDevices::keep(const Device &device, const std::exception_ptr &failure) noexcept
{
    try {
        const Told mine = told_by(failure);
        const std::lock_guard lock(mutex_);
        if (mine.number != told_) defer_error_of_work(device, mine.status, mine.text, mine.number);
        return mine.number;
    } catch (const std::bad_alloc &) {  // the work reports the failure
        return 0;
    }
}

void FailuresOfDevices::note_told(const std::exception_ptr &failure) noexcept
{
    try {
        note_told(told_by(failure).number);
    } catch (const std::bad_alloc &) {  // the failure is then reported twice
    }
}

void FailuresOfDevices::note_told(uint64_t failure) noexcept
{
    const std::lock_guard lock(mutex_);
    told_ = failure;
    forget_deferred_error(failure);
}

namespace {

class TellingTail final : public Work::Tail {
public:
    TellingTail(std::shared_ptr<FailuresOfDevices> failures, std::exception_ptr failure)
        : failures_(std::move(failures)), failure_(std::move(failure))
    {
    }
    bool is_reached() noexcept override { return true; }
    bool wait(double) override { return true; }
    void follow() override {}
    void note_told() noexcept override { failures_->note_told(failure_); }

private:
    const std::shared_ptr<FailuresOfDevices> failures_;
    const std::exception_ptr failure_;
};

}  // namespace

std::unique_ptr<Work::Tail> make_telling_tail(std::shared_ptr<FailuresOfDevices> failures,
                                              std::exception_ptr failure) noexcept
try {
    return std::make_unique<TellingTail>(std::move(failures), std::move(failure));
} catch (const std::bad_alloc &) {
    return nullptr;
}

// ---- Streams of groups ------------------------------------------------------------------------------------------

namespace {

// Stagings with a stream.
struct Live {
    Mutex mutex{LockRank::kOther};
    std::vector<Staging *> all;
};
Live &live = immortal<Live>();

}  // namespace

Staging::~Staging()
{
    const std::lock_guard lock(live.mutex);
    std::erase(live.all, this);
}

bool Staging::has_stream_of(const Device &device) const noexcept
{
    return std::ranges::find(streams_, &device, &decltype(streams_)::value_type::first) !=
           streams_.end();
}

Ref<Stream> Staging::stream_of(Device &device)
{
    const auto known = [&]() -> Ref<Stream> {
        for (const auto &[of, stream] : streams_)
            if (of == &device) return stream;
        return nullptr;
    };
    {
        const std::lock_guard lock(live.mutex);
        if (Ref<Stream> found = known(); found.present()) return found;
    }
    Ref<Stream> made = make_inner_stream(device);
    const std::lock_guard lock(live.mutex);
    if (Ref<Stream> found = known(); found.present()) return found;
    live.all.reserve(live.all.size() + 1);
    streams_.emplace_back(&device, made);
    if (streams_.size() == 1) live.all.push_back(this);
    return made;
}

int64_t detail::live_groups(Device &device, size_t most, std::vector<std::string> &names)
{
    int64_t count = 0;
    std::unique_lock lock(live.mutex);
    for (const Staging *each : live.all) {
        if (!each->has_stream_of(device)) continue;
        if (static_cast<size_t>(count++) < most)
            names.push_back(format("a group of collectives with a stream of %s (%s)",
                                   device.name.c_str(), each->whose().c_str()));
    }
    lock.unlock();
    return count +
           live_communicators(device, most - std::min(most, static_cast<size_t>(count)), names);
}

// ---- Work on the device behind a call ---------------------------------------------------------------------------

class Staged::Tail final : public Work::Tail {
public:
    Tail(Device &device, std::shared_ptr<FailuresOfDevices> failures)
        : device_(device), failures_(std::move(failures))
    {
    }

    // Takes the tensor of a result, and the fence behind its copy. Watches the tensor, because a write before the
    // wait for the work would race with the copy.
    void note_result(const Tensor &out, const char *call, Ref<Fence> done, InUse in_use)
    {
        out_ = out->storage;
        in_use_ = std::move(in_use);
        call_ = call;
        done_ = std::move(done);
    }
    void keep(const std::exception_ptr &failure, bool is_told) noexcept
    {
        if (is_told)
            failures_->note_told(failure);
        else
            kept_ = failures_->keep(device_, failure);
    }

    bool is_reached() noexcept override
    {
        try {
            if (done_.present() && !yoke::is_reached(*done_)) return false;
            leave_result();
        } catch (const std::exception &) {  // `wait` reports the error
        }
        return true;
    }
    bool wait(double seconds) override
    {
        if (done_.present() && !is_reached_by(*done_, Deadline::after(seconds), {})) return false;
        leave_result();
        return true;
    }
    void follow() override
    {
        check_not_capturing("wait for a collective");
        if (done_.present()) wait_fence(device_, memory_lane(device_), *done_);
        leave_result();
    }
    void note_told() noexcept override
    {
        if (kept_) failures_->note_told(kept_);
    }

private:
    // Ends the watch of the result: from now on the tensor may be written. Raises YOKE_E_STATE if the tensor was
    // written before.
    void leave_result()
    {
        Ref<Storage> left;
        const std::lock_guard lock(mutex_);
        if (!out_.present()) return;
        in_use_.check(call_);
        in_use_ = {};
        std::swap(left, out_);
    }

    Device &device_;
    const std::shared_ptr<FailuresOfDevices> failures_;
    uint64_t kept_ = 0;  // number of the device's deferred failure; 0: no failure
    const char *call_ = "";
    Ref<Fence> done_;
    std::mutex mutex_;
    Ref<Storage> out_;  // null after a wait
    InUse in_use_;
};

// ---- Staged call ------------------------------------------------------------------------------------------------

Staged::Staged(Staging &staging, Device &device, Uses uses)
    : staging_(staging),
      device_(device),
      uses_(uses),
      callers_(current_stream(device)),
      tail_(std::make_unique<Tail>(device, staging.failures()))
{
}

Staged::~Staged() = default;

Ref<Staged> Staged::make(Staging &staging, Device &device, Uses uses)
{
    check_usable(device);
    return Ref<Staged>::adopt(new Staged(staging, device, uses));
}

void Staged::begin(const Tensor &in, const Tensor &out)
{
    const auto room = [this](const yoke_tensor &x) {
        return make_pinned(device_, x.dtype, x.shape(), "collective");
    };
    const NoGrad no_grad;
    stream_ = staging_.stream_of(device_);
    const uint8_t lane = stream_->lane.id;
    if (const Ref<Fence> ready = fence_behind(device_, callers_->lane.id); ready.present())
        wait_fence(device_, lane, *ready);
    callers_ = nullptr;
    const OnStream on(*stream_);
    const bool is_one = in.get() == out.get();
    if (in.present() && (uses_.in || is_one)) in_ = room(*in);
    if (is_one) out_ = in_;
    if (out.present() && uses_.out) {
        out->storage->note_writing(lane);
        if (!is_one) out_ = room(*out);
        if (!out->contiguous) dense_ = make_tensor(device_, out->dtype, out->shape(), "collective");
    }
    if (!in.present() || !uses_.in) return;
    transfer(*in_, *(in->contiguous ? in : ops::contiguous(*in)), true);
    read_ = fence_behind(device_, lane);
}

bool Staged::wait_until_read(Deadline deadline, const std::function<bool()> &is_over) const
{
    return !read_.present() || is_reached_by(*read_, deadline, is_over);
}

void Staged::bring_back(const Tensor &out, const char *call, InUse in_use)
{
    if (!out.present() || !uses_.out) return;
    const OnStream on(*stream_);
    const InUse::Writing writing(*out, nullptr);
    if (dense_.present()) {
        transfer(*dense_, *out_, true);
        in_use.note_former_writer();
        ops::copy_(*out, *dense_);
    } else {
        transfer(*out, *out_, true);
        in_use.note_former_writer();
        out->storage->note_written(call);
    }
    in_use.note_own_write();
    tail_->note_result(out, call, fence_behind(device_, stream_->lane.id), std::move(in_use));
}

void Staged::follow()
{
    tail_->follow();
}

std::unique_ptr<Work::Tail> Staged::end(const std::exception_ptr &failure, bool is_told) noexcept
{
    if (failure) tail_->keep(failure, is_told);
    return std::move(tail_);
}

}  // namespace yoke
