// late_call.h: a deferred call, whose engine puts its work on the stream of a device.
//
// A call is staged before it has a number, launched behind earlier calls, and lands when the device is done:
//
//  * `stage`: the caller's thread. The stream of the lane waits for the caller's stream; tensors become dense.
//  * `note_number`: the caller's thread, under the lock of the queue.
//  * `launch`, then `end_launch`: the caller's thread, in a turn of the lane. `refuse`: the caller's thread.
//  * `await_launch`, `settle`, `land`: the group's thread.
//  * `is_over`, `wait`, `follow`, `let_go`: the holder of the work, in any thread.
//  * `is_reached`: the watch thread as well.
//
// A call holds its tensors until its caller's stream has come behind the call, or the work is released. After that,
// the allocator guards the memory by the call's fence. Memory of the host program and of engines is held until the
// call lands; a thread of its own releases this memory (let_go.h).
#pragma once

#include "core/base/deadline.h"
#include "core/base/script.h"
#include "core/base/work.h"
#include "core/comm/collective.h"
#include "core/comm/in_use.h"
#include "core/comm/late/device_engine.h"
#include "core/comm/late/late_parts.h"
#include "core/device/deferred_error.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace yoke {

class LateCall final : public RefCounted {
public:
    // Makes a call, behind the work on the calling thread's current stream.
    static Ref<LateCall> make(std::shared_ptr<DeviceEngine> engine);

    // Takes the call's tensors and makes them dense for the engine, on the lane's stream behind the caller's stream.
    // Raises OOM, and the device's failure.
    void stage(Collective &call, RankOf at);
    void note_number(const yoke_comm_signature &signature, Deadline deadline,
                     const ScriptLine *line) noexcept;

    // Notes that a caller has a work of the call. Until the wait, the caller gets an error for foreign writes to its
    // tensors.
    void note_work() noexcept { has_work_ = true; }
    bool has_work() const noexcept { return has_work_; }
    void launch(Engine &engine, Engine::Together &together);
    // Copies the engine's result to the call's tensor if the tensor is not dense, and notes that the tensor was
    // written. Calls launched together do this behind all of the launched calls.
    void bring_back();
    void end_launch(Ref<Fence> done) noexcept;
    // Marks the call as refused by the engine, unless the call was launched. If `keeps_memory`, the call's memory
    // stays for the life of the process.
    void refuse(bool keeps_memory) noexcept;
    // Notes that all ranks have compared their calls, or that the group has failed. A host thread that waits for a
    // stream behind the call waits for this note too.
    void settle() noexcept;
    // Waits until the stream has the call, and returns true. Returns false if the engine did not take the call, and
    // null at the deadline.
    std::optional<bool> await_launch(Deadline deadline) const noexcept;
    bool is_given() const noexcept;
    // Releases the rest of the call's memory, at its end. An aborted call's memory is released behind the call's
    // fence. A refused call has no fence: its memory stays until the call is destroyed. If `refuse` got
    // `keeps_memory`, the memory stays for the life of the process.
    void land(bool has_ended) noexcept;

    // Returns whether the device is done with the call. Raises the device's failure.
    bool is_reached() const { return yoke::is_reached(*done_); }
    // Returns whether a wait would end at once: the call has ended, was aborted or refused. Releases the tensors of a
    // call that has ended well.
    bool is_over() noexcept;
    // Blocks the calling thread until the call has ended, and releases the tensors. Returns false at the deadline;
    // raises the failure of the call or of its group.
    bool wait(double seconds);
    // Puts the calling thread's current stream behind the call, without a wait of the thread, and releases the
    // tensors. Raises the failure of the group.
    void follow();
    // Releases the tensors of a call when its work is released. The call's fence guards their memory until the device
    // is done.
    void let_go() noexcept;

    DeviceEngine &engine() const noexcept { return *engine_; }
    CurrentCall current() const;
    CommLane::User as_user() const noexcept;
    const char *name() const noexcept { return collective_name(record_.op); }
    Deadline deadline() const noexcept { return number_.deadline; }
    uint64_t place() const noexcept { return number_.place; }  // on the stream; set by launch
    bool is_message() const noexcept { return number_.signature.op == YOKE_COMM_SEND; }

private:
    explicit LateCall(std::shared_ptr<DeviceEngine> engine);
    ~LateCall() override;
    void check_untouched() const;
    void raise_if_aborted() const;
    std::vector<Ref<Storage>> take_storages() noexcept;
    template <class Guard>
    void drop_tensors(const Guard &guard) noexcept;

    const std::shared_ptr<DeviceEngine> engine_;
    Ref<Stream> callers_;
    CallNumber number_;
    yoke_collective record_{};
    DenseTensors dense_;
    bool has_work_ = false, has_result_ = false, keeps_memory_ = false, is_settled_ = false;
    Ref<Fence> done_;
    Unsettled unsettled_;
    enum State : int { kIssued, kLaunched, kRefused, kLanded };
    std::atomic<int> state_{kIssued};
    mutable std::mutex mutex_;
    Tensor in_, out_;  // absent after the release
    std::vector<Ref<Storage>> foreign_;
    InUse in_use_;
};

// Tail of a work with a LateCall.
class LateTail final : public Work::Tail {
public:
    explicit LateTail(Ref<LateCall> call) : call_(std::move(call)) { call_->note_work(); }
    ~LateTail() override { call_->let_go(); }
    bool is_reached() noexcept override { return call_->is_over(); }
    bool is_given() const noexcept override { return call_->is_given(); }
    bool wait(double seconds) override { return call_->wait(seconds); }
    void follow() override { call_->follow(); }
    void note_told() noexcept override { call_->engine().note_told(); }

private:
    const Ref<LateCall> call_;
};

}  // namespace yoke
