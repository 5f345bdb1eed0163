#include "core/comm/failure.h"

#include "core/autograd/node.h"
#include "core/base/config.h"
#include "core/base/error.h"
#include "core/comm/record.h"
#include "core/launch/error_file.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace yoke {

Failure::Failure(const Members &members, const GroupKeys &keys, Departures &departures, Look look)
    : members_(members), keys_(keys), departures_(departures), look_(std::move(look))
{
}

void Failure::fail(const Cause &mine, double timeout_s) noexcept
{
    if (!is_failed()) fail_with(keys_.agree(mine, timeout_s));
}

// Fails the group: keeps the cause, ends the engine's calls and the views of the store, and writes the dump. Does
// nothing in a failed group. The launcher gets the report before any call raises, and may end the process.
void Failure::fail_with(const Cause &cause) noexcept
{
    if (is_failed()) return;
    const bool is_tried_again = members_.is_again && !is_made();
    const bool is_news = !cause.is_planned && !is_tried_again;
    if (is_news) tell_launcher(cause.text);  // without the lock, since this may log
    const FailureDump dump = is_news ? make_dump(cause) : FailureDump();
    {
        const std::lock_guard lock(mutex_);
        if (failed_) return;
        failed_ = Failed{cause, monotonic_seconds(), dump.written()};
        failed_->cause.number = new_failure_number();
        const std::shared_ptr<DeviceEngine> on_device = engines_.device.lock();
        if (on_device) on_device->take(failed_->cause, failed_->dumped);  // before any call raises
        is_failed_.store(true, std::memory_order_release);
        for (const View &each : views_)
            if (const auto store = each.store.lock())
                store->abort(cause.status, cause.text, cause.call_size);
        if (const std::shared_ptr<Engine> engine = engines_.host.lock()) {
            engine->abort();
            if (departures_.has_gone(departures_.server()))
                engine->hang_up();  // no rank can receive the cause
        } else {
            members_.store->abort(cause.status, cause.text,
                                  cause.call_size);  // this rank still waits for others
        }
        if (on_device) on_device->abort();
        changed_.notify_all();
    }
    dump.write();
}

void Failure::raise_if_failed(const char *call)
{
    if (!is_failed()) return;
    silence_devices();
    raise_amid(call);
}

void Failure::silence_devices() noexcept
{
    if (is_failed()) devices_->note_told(failed_->cause.number);
}

void Failure::raise_amid(const char *call)
{
    if (!is_failed()) return;
    const Cause told = name_by(call);
    await_dump();
    note_told();
    told.raise();
}

Cause Failure::name_by(const char *call)
{
    if (const char *nobody = nullptr; failed_->cause.is_of_no_call)
        named_by_.compare_exchange_strong(nobody, call);
    return *cause();
}

void Failure::await(const char *call)
{
    constexpr std::chrono::milliseconds kToHear{1000};
    {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, kToHear, [this] { return is_failed(); });
    }
    raise_if_failed(call);
}

void Failure::fail_alone(const char *call, const Cause &mine)
{
    fail(mine);
    raise_amid(call);
    __builtin_unreachable();  // fail has left a cause
}

// Raises if the store has gone with the rank that keeps it. A group that goes on without its store cannot run calls
// that need the store.
void Failure::check_table(const char *call)
{
    constexpr std::chrono::milliseconds kToBeHeard{1000};
    if (!members_.met || members_.met->server || !keys_.is_out_of_reach()) return;
    if (departures_.server() >= 0) return await(call);
    departures_.await_any({departures_.server()}, kToBeHeard);
    fail_in(
        call, YOKE_E_COMM,
        "%s, which kept the store of the job, %s; collectives of this group go on without the store, and shrink makes a group with its own store",
        describe(members_.met->ranks.front()).c_str(),
        departures_.has_gone(departures_.server()).value_or(false) ? "has left"
                                                                   : "died: the connection ended");
}

std::optional<Cause> Failure::cause(double *at_s) const
{
    if (!is_failed()) return std::nullopt;
    if (at_s) *at_s = failed_->at_s;
    Cause told = failed_->cause;
    if (const char *call = named_by_.load(); call && told.is_of_no_call) {
        told.text = std::string(call) + ": " + told.text;
        told.call_size = std::string_view(call).size();
        told.is_of_no_call = false;
    }
    return told;
}

void Failure::note_told() noexcept
{
    uint64_t before = UINT64_MAX;
    told_at_.compare_exchange_strong(before, next_sequence_number());
}

bool Failure::was_told_before(uint64_t sequence) const noexcept
{
    const uint64_t told = told_at_;
    return told != UINT64_MAX && sequence >= told;
}

void Failure::await_dump() const noexcept
{
    if (is_failed() && failed_->dumped.valid()) failed_->dumped.wait();
}

FailureDump Failure::make_dump(const Cause &cause) const noexcept
try {
    const char *const folder = try_config("YOKE_COMM_DUMP");
    return folder ? FailureDump(folder, look_(cause)) : FailureDump();
} catch (const std::exception &failure) {
    log_no_dump(failure);
    return {};
}

void Failure::dump_of(const Cause &cause) const noexcept
{
    make_dump(cause).write();
}

void Failure::attach(const std::shared_ptr<Engine> &engine)
{
    const std::lock_guard lock(mutex_);
    engines_.host = engine;
    engines_.are_made = true;
    if (failed_) engine->abort();
}

void Failure::attach(const std::shared_ptr<DeviceEngine> &engine)
{
    const std::lock_guard lock(mutex_);
    engines_.device = engine;
    if (!failed_) return;
    engine->take(failed_->cause, failed_->dumped);
    engine->abort();
}

bool Failure::is_made() const noexcept
{
    const std::lock_guard lock(mutex_);
    return engines_.are_made;
}

std::shared_ptr<Engine> Failure::engine() const noexcept
{
    const std::lock_guard lock(mutex_);
    return engines_.host.lock();
}

size_t Failure::add_view(const std::shared_ptr<Store> &view, bool ends_with_a_rank,
                         const char *call)
{
    size_t dead = 0;
    {
        const std::lock_guard lock(mutex_);
        std::erase_if(views_, [](const View &each) { return each.store.expired(); });
        if (!failed_) views_.push_back({view, ends_with_a_rank});
        dead = departures_.count_dead();
    }
    raise_if_failed(call);
    return dead;
}

void Failure::remove_view(const std::shared_ptr<Store> &view) noexcept
{
    const std::lock_guard lock(mutex_);
    std::erase_if(views_, [&](const View &each) { return each.store.lock() == view; });
}

// Notes a departed rank, and ends the views that end with a rank if the rank died. A view added meanwhile either ends
// with this rank, or its caller knows that the rank is dead.
void Failure::note_gone(int32_t rank, bool with_farewell) noexcept
{
    const std::lock_guard lock(mutex_);
    departures_.note_gone(rank, with_farewell);
    for (const View &each : views_)
        if (const auto store =
                !with_farewell && each.ends_with_a_rank ? each.store.lock() : nullptr)
            store->abort(YOKE_E_COMM, "a rank has died");
}

}  // namespace yoke
