#include "core/state/writer.h"

#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/base/log.h"
#include "core/base/start_thread.h"
#include "core/ops/ops.h"
#include "core/state/lacks.h"
#include "core/tensor/snapshot.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

namespace yoke {

// ---- The current save -------------------------------------------------------------------------------------------

namespace {

// State of the save begun last, until its end is reported.
struct BackgroundWriter {
    Mutex mutex{LockRank::kOther};
    Ref<Work> work;
    std::thread thread;
    pid_t process = 0;  // a forked child has no part in the save
};
BackgroundWriter &background_writer = immortal<BackgroundWriter>();

Ref<Work> current_save()
{
    const std::lock_guard lock(background_writer.mutex);
    if (background_writer.process != getpid()) return nullptr;
    return background_writer.work;
}

// Joins the thread of an ended save, so the next save may begin.
void retire(const Work &work)
{
    std::thread thread;
    {
        const std::lock_guard lock(background_writer.mutex);
        if (background_writer.work.get() != &work) return;
        thread = std::move(background_writer.thread);
        background_writer.work = {};
    }
    if (thread.joinable()) thread.join();
}

std::string text_of(const std::exception_ptr &failure)
{
    try {
        std::rethrow_exception(failure);
    } catch (const std::exception &error) {
        return error.what();
    }
}

void log_failure(const std::exception_ptr &failure)
{
    log(LogLevel::kError, "an earlier save, without a wait, failed: %s", text_of(failure).c_str());
}

[[noreturn]] void raise_for_former(const std::exception_ptr &failure, const char *call)
{
    constexpr const char *kText =
        "%s: no state was saved, because the save before, without a wait, failed: %s";
    try {
        std::rethrow_exception(failure);
    } catch (const Error &error) {
        throw Error(error.status(), format(kText, call, error.what()), error.native_code());
    } catch (const std::exception &error) {
        fail(YOKE_E_INTERNAL, kText, call, error.what());
    }
}

// Makes the save the current save. Returns false if another save is still the current save.
bool take_place(const Ref<Work> &work)
{
    const std::lock_guard lock(background_writer.mutex);
    if (background_writer.process != getpid()) {
        new (&background_writer.thread) std::thread;  // the thread exists in the parent alone
        new (&background_writer.work) Ref<Work>;
        background_writer.process = getpid();
    }
    if (background_writer.work.get()) return false;
    background_writer.work = work;
    return true;
}

void wait_at_exit()
{
    constexpr double kAsLongAsItTakes = -1;
    end_saves(kAsLongAsItTakes);
}

}  // namespace

void wait_for_save(const char *call, bool is_blocking)
{
    const Ref<Work> held = current_save();
    Work *work = held.get();
    if (!work) return;
    if (work->is_done_here())
        fail(
            YOKE_E_STATE,
            "%s: the thread that writes the earlier save made this call, from a release of its memory; save from another thread",
            call);
    work->wait_for_end(-1);
    const std::exception_ptr failure = work->take_untold();
    retire(*work);
    if (failure && !is_blocking) raise_for_former(failure, call);
    if (failure) log_failure(failure);
}

bool end_saves(double seconds) noexcept
{
    const Ref<Work> work = current_save();
    if (!work.present()) return true;
    if (!work->wait_for_end(seconds)) return false;
    retire(*work.get());
    if (const std::exception_ptr failure = work->take_untold()) log_failure(failure);
    return true;
}

// ---- Writing ----------------------------------------------------------------------------------------------------

void for_each_chunk(const yoke_tensor &x, const std::function<void(const void *, uint64_t)> &take,
                    const char *call)
{
    if (x.numel == 0) return;
    if (x.device->host && x.contiguous) return take(x.data, x.nbytes());
    if (x.nbytes() <= kMostChunk) {
        const Tensor dense = ops::contiguous(x);
        if (dense->device->host) return take(dense->data, dense->nbytes());
        std::string bytes(dense->nbytes(), '\0');
        copy_to_host(*dense, bytes.data(), bytes.size(), call);
        return take(bytes.data(), bytes.size());
    }
    const uint64_t row = x.nbytes() / static_cast<uint64_t>(x.shape_[0]);
    const auto rows = static_cast<int64_t>(std::max<uint64_t>(1, kMostChunk / row));
    for (int64_t first = 0; first < x.shape_[0]; first += rows) {
        Dims shape{x.shape()};
        shape[0] = std::min(rows, x.shape_[0] - first);
        IntList sizes = shape, strides = x.strides();
        if (row > kMostChunk) sizes = sizes.subspan(1), strides = strides.subspan(1);
        for_each_chunk(*make_view(x, sizes, strides.data(), first * x.strides_[0]), take, call);
    }
}

namespace {

// Writes the files in order, commits, and warns of unsupported calls. `put_tensor` gets the tensor's index among all
// tensors.
template <class Put, class PutTensor>
void write_files(const std::vector<StateToSave::File> &files, SaveTarget &target, const Put &put,
                 const PutTensor &put_tensor, const char *call)
{
    size_t tensor = 0;
    for (size_t i = 0; i < files.size(); ++i) {
        target.begin_file(i);
        put(files[i].header.data(), files[i].header.size());
        for (size_t left = files[i].names.size(); left > 0; --left) put_tensor(tensor++);
    }
    target.commit();
    tell_lacks(call);
}

Ref<Work> write_now(SaveTarget &target, const StateToSave &state, const char *call)
{
    const NoGrad no_grad;
    Ref<Work> work = Work::begin(state.bytes);
    const auto put = [&](const void *from, uint64_t bytes) {
        target.write(from, bytes);
        work->advance(bytes);
    };
    write_files(
        state.files, target, put, [&](size_t i) { for_each_chunk(*state.tensors[i], put, call); },
        call);
    work->finish(nullptr);
    return work;
}

// Save from copies of its tensors. A thread makes and writes the copies.
struct Save {
    std::unique_ptr<SaveTarget> target;
    std::vector<StateToSave::File> files;
    Ref<Snapshot> snapshot;
    Ref<Work> work;
    const char *call = nullptr;

    void run() noexcept;
};

// Runs the save. Releases the target and the copies before the end is reported.
void Save::run() noexcept
{
    const Work::Doing doing(*work);
    const auto put = [this](const void *from, uint64_t bytes) {
        for (uint64_t done = 0; done < bytes;) {
            const uint64_t chunk = std::min(bytes - done, kMostChunk);
            target->write(static_cast<const char *>(from) + done, chunk);
            work->advance(chunk);
            done += chunk;
        }
    };
    std::exception_ptr failure;
    try {
        snapshot->copy();
        write_files(
            files, *target, put, [&](size_t i) { put(snapshot->data(i), snapshot->bytes(i)); },
            call);
    } catch (...) {
        failure = std::current_exception();
    }
    target.reset();
    snapshot = {};
    work->finish(std::move(failure));
}

// Returns a snapshot of the tensors, for a save in the background. If memory for the copies is missing, logs a
// warning and returns null. The caller then writes the files before it returns.
Ref<Snapshot> take_snapshot(const StateToSave &state, const char *call)
{
    try {
        std::vector<Tensor> tensors = state.tensors;
        for (Tensor &each : tensors) {
            if (each->contiguous) continue;
            const NoGrad no_grad;
            each = ops::contiguous(*each);
        }
        return Snapshot::take(std::move(tensors), call);
    } catch (const Error &error) {
        if (error.status() != YOKE_E_OOM) throw;
        log(LogLevel::kWarn, "%s: %s; the call returns when all data is written", call,
            error.what());
        return nullptr;
    }
}

// Begins the save in a thread of its own, after the current save, and returns the work. If the system gives no
// thread, logs a warning and saves in this thread.
Ref<Work> write_beside(std::unique_ptr<SaveTarget> target, std::vector<StateToSave::File> files,
                       Ref<Snapshot> snapshot, uint64_t bytes, const char *call)
{
    static const int registered = atexit(wait_at_exit);
    (void)registered;
    struct UntilBegun {
        ~UntilBegun()
        {
            if (!is_begun) snapshot->forget();
        }
        const Ref<Snapshot> snapshot;
        bool is_begun = false;
    } held{snapshot};
    const Ref<Work> work = Work::begin(bytes);
    const auto save = std::make_shared<Save>();
    save->target = std::move(target);
    save->files = std::move(files);
    save->snapshot = std::move(snapshot);
    save->work = work;
    save->call = call;
    while (!take_place(work)) wait_for_save(call, false);
    held.is_begun = true;
    std::thread thread;
    if (const std::string why = start_thread(thread, [save] { save->run(); }); !why.empty()) {
        log(LogLevel::kWarn,
            "%s: the system cannot start a thread (%s); the call returns when all data is written",
            call, why.c_str());
        save->run();
    }
    const std::lock_guard lock(background_writer.mutex);
    if (background_writer.work.get() == work.get())
        background_writer.thread = std::move(thread);
    else if (thread.joinable())
        thread.detach();  // another thread has seen the end already
    return work;
}

}  // namespace

Ref<Work> save_to(std::unique_ptr<SaveTarget> target, StateToSave &&state, bool is_blocking,
                  const char *call)
{
    if (!is_blocking)
        if (Ref<Snapshot> snapshot = take_snapshot(state, call); snapshot.present())
            return write_beside(std::move(target), std::move(state.files), std::move(snapshot),
                                state.bytes, call);
    return write_now(*target, state, call);
}

}  // namespace yoke
