#include "core/comm/late/late_call.h"

#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/comm/await_fence.h"
#include "core/comm/keep_for_good.h"
#include "core/comm/late/let_go.h"
#include "core/device/inner_stream.h"
#include "core/memory/memory.h"
#include "core/ops/ops.h"
#include "core/tensor/snapshot.h"

#include <new>
#include <utility>

namespace yoke {

LateCall::LateCall(std::shared_ptr<DeviceEngine> engine)
    : engine_(std::move(engine)), callers_(current_stream(engine_->device()))
{
}

LateCall::~LateCall() = default;

Ref<LateCall> LateCall::make(std::shared_ptr<DeviceEngine> engine)
{
    check_usable(engine->device());
    return Ref<LateCall>::adopt(new LateCall(std::move(engine)));
}

// ---- Until the stream has it ------------------------------------------------------------------------------------

void LateCall::stage(Collective &call, RankOf at)
{
    Device &device = engine_->device();
    CommLane &lane = engine_->lane();
    const NoGrad no_grad;
    if (const Ref<Fence> ready = fence_behind(device, callers_->lane.id); ready.present())
        wait_fence(device, lane.id(), *ready);
    callers_ = nullptr;
    number_.signature = signature_of(call);  // until the call is numbered
    const OnStream on(lane.stream());
    const Staged::Uses uses = uses_of(call, at);
    const bool is_one = call.in.get() == call.out.get(),
               has_both = call.in.present() && call.out.present();
    Tensor in = call.in, out = call.out;
    if (in.present() && (uses.in || is_one) && !in->contiguous)
        in = dense_.in = ops::contiguous(*in);
    if (is_one)
        out = in, dense_.out = dense_.in;
    else if (out.present() && uses.out && !out->contiguous)
        out = dense_.out = make_tensor(device, out->dtype, out->shape(), call.name());
    if (!is_one && has_both && overlaps_in_part(*in, *out, call.op, at.rank))
        in = dense_.in = ops::clone(*in);
    has_result_ = call.out.present() && uses.out;
    if (has_result_) {
        before_write(*call.out->storage);
        call.out->storage->note_writing(lane.id());
    }
    record_ = record_of(call, in, out, at.rank);
    record_.stream = lane.stream().lane.native;
    in_ = std::exchange(call.in, {});
    out_ = std::exchange(call.out, {});
}

void LateCall::note_number(const yoke_comm_signature &signature, Deadline deadline,
                           const ScriptLine *line) noexcept
{
    number_ = {signature, deadline, line, 0};
    engine_->note_issued();
}

void LateCall::launch(Engine &engine, Engine::Together &together)
{
    number_.place = engine_->lane().next_place();
    if (has_work_) in_use_ = InUse(in_, out_, &engine_->lane());
    record_.signature = &number_.signature;
    record_.timeout_s = number_.deadline.remaining_s();
    engine.call(record_, together);
}

void LateCall::bring_back()
{
    const NoGrad no_grad;
    const OnStream on(engine_->lane().stream());
    if (has_result_) {
        const InUse::Writing writing(*out_, &engine_->lane());
        if (dense_.out.present())
            ops::copy_(*out_, *dense_.out);
        else
            out_->storage->note_written(name());
    }
    dense_ = {};
}

void LateCall::end_launch(Ref<Fence> done) noexcept
{
    done_ = std::move(done);
    {
        const std::lock_guard lock(mutex_);
        if (!is_settled_)
            unsettled_.begin(engine_->device(), has_work_ ? Behind::kAll : Behind::kFollowed);
    }
    state_.store(kLaunched, std::memory_order_release);
}

void LateCall::refuse(bool keeps_memory) noexcept
{
    if (state_.load() != kIssued) return;
    keeps_memory_ = keeps_memory;
    state_.store(kRefused, std::memory_order_release);
}

bool LateCall::is_given() const noexcept
{
    const int state = state_.load(std::memory_order_acquire);
    return state == kLaunched || state == kLanded;
}

// Waits for the launch, and returns whether the stream has the call; null at the deadline. An entry of the engine may
// hang, so the wait ends at the deadline.
std::optional<bool> LateCall::await_launch(Deadline deadline) const noexcept
{
    const auto began = Deadline::Clock::now();
    while (state_.load(std::memory_order_acquire) == kIssued) {
        if (deadline.has_passed()) return std::nullopt;
        pause_between_looks(began);
    }
    return is_given();
}

// ---- Its end ----------------------------------------------------------------------------------------------------

// Releases the call's tensors, after guard(storage) for memory of the allocator. Other memory stays with the call
// until the call lands.
template <class Guard>
void LateCall::drop_tensors(const Guard &guard) noexcept
{
    Tensor gone[2];  // outlive the lock, because their release may free memory
    const std::lock_guard lock(mutex_);
    in_use_ = {};
    const auto drop = [&](Tensor &tensor, Tensor &taken) {
        if (!tensor.present()) return;
        try {
            Storage &storage = *tensor->storage;
            if (storage.block())
                guard(storage);
            else if (storage.bytes && state_.load(std::memory_order_acquire) != kLanded)
                foreign_.push_back(tensor->storage);
            taken = std::move(tensor);
        } catch (const std::bad_alloc &) {  // the tensor stays until the call lands
        }
    };
    drop(in_, gone[0]);
    drop(out_, gone[1]);
}

// Takes from the call all memory still held, and returns it, for a call that did not end well.
std::vector<Ref<Storage>> LateCall::take_storages() noexcept
{
    std::vector<Ref<Storage>> taken;
    std::vector<Tensor> given;  // outlive the lock
    const std::lock_guard lock(mutex_);
    in_use_ = {};  // refers to the storages without a reference
    taken.swap(foreign_);
    for (Tensor *each : {&in_, &out_, &dense_.in, &dense_.out}) {
        if (!each->present()) continue;
        try {
            taken.push_back((*each)->storage);
            given.push_back(std::move(*each));
        } catch (const std::bad_alloc &) {  // the storage stays as long as the call
        }
    }
    return taken;
}

void LateCall::land(bool has_ended) noexcept
{
    if (has_ended) {
        std::vector<Ref<Storage>> foreign;
        {
            const std::lock_guard lock(mutex_);
            foreign.swap(foreign_);
            state_.store(kLanded, std::memory_order_release);
        }
        let_go_of(std::move(foreign), nullptr);
    } else if (done_.present()) {
        let_go_of(take_storages(), done_);
    } else if (keeps_memory_) {
        keep_for_good(take_storages(), engine_->device().name.c_str());
    }
    engine_->note_ended();
}

void LateCall::settle() noexcept
{
    const std::lock_guard lock(mutex_);
    is_settled_ = true;
    unsettled_.settle();
}

void LateCall::raise_if_aborted() const
{
    if (state_.load(std::memory_order_acquire) == kLanded) return;
    if (const std::exception_ptr failure = engine_->failure()) {
        engine_->note_told();
        std::rethrow_exception(failure);
    }
}

void LateCall::check_untouched() const
{
    const std::lock_guard lock(mutex_);
    in_use_.check(name());
}

bool LateCall::is_over() noexcept
{
    if (!is_given()) return true;  // the call was refused
    try {
        if (!is_reached()) return engine_->is_aborted();
        if (engine_->is_aborted()) return true;
        check_untouched();
        drop_tensors([](Storage &) {});
    } catch (const std::exception &) {  // `wait` reports the error
    }
    return true;
}

bool LateCall::wait(double seconds)
{
    const auto is_aborted = [this] { return engine_->is_aborted(); };
    const bool has_ended = is_reached_by(*done_, Deadline::after(seconds), is_aborted);
    raise_if_aborted();
    if (!has_ended) return false;
    check_untouched();
    drop_tensors([](Storage &) {});
    return true;
}

void LateCall::follow()
{
    raise_if_aborted();
    Device &device = engine_->device();
    const uint8_t lane = memory_lane(device);
    check_not_capturing("wait for a collective");
    wait_fence(device, lane, *done_);
    {
        const std::lock_guard lock(mutex_);
        unsettled_.note_followed();
    }
    check_untouched();
    drop_tensors([lane](Storage &storage) { storage.note_use(lane); });
}

void LateCall::let_go() noexcept
{
    std::vector<Ref<Storage>>
        waiting;  // with caching off a free waits for the fence, and this may be the group's thread
    drop_tensors([&](Storage &storage) {
        if (!done_.present()) return;
        storage.note_use(done_);
        if (!is_caching()) waiting.push_back(Ref<Storage>::share(&storage));
    });
    let_go_of(std::move(waiting), done_);
}

CommLane::User LateCall::as_user() const noexcept
{
    return {number_.signature, number_.line, record_.op == YOKE_COMM_RECV ? record_.peer : -1};
}

CurrentCall LateCall::current() const
{
    return {number_.signature, describe(number_.line),
            record_.op == YOKE_COMM_RECV ? record_.peer : -1};
}

}  // namespace yoke
