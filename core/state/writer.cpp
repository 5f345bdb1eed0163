#include "core/state/writer.h"

#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/base/log.h"
#include "core/base/start_thread.h"
#include "core/state/lacks.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

namespace yoke {

namespace {

// The save that was begun last, until its end is told.
struct BackgroundWriter {
    Mutex mutex{LockRank::kOther};
    Ref<Work> work;
    std::thread thread;
    pid_t process = 0;  // a forked child has no part in it
};
BackgroundWriter &background_writer = immortal<BackgroundWriter>();

struct Save {
    std::unique_ptr<SaveTarget> target;
    std::vector<StateToSave::File> files;
    Ref<Snapshot> snapshot;
    Ref<Work> work;
    const char *call;

    void run() noexcept;
    void write(const char *from, uint64_t bytes);
};

void Save::write(const char *from, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes;) {
        const uint64_t chunk = std::min(bytes - done, kMostChunk);
        target->write(from + done, chunk);
        work->advance(chunk);
        done += chunk;
    }
}

// What is left of the target and the copies goes before anybody is told of the end.
void Save::run() noexcept
{
    const Work::Doing doing(*work);
    std::exception_ptr failure;
    try {
        snapshot->copy();
        write_files(
            files, *target,
            [this](const std::string &header) { write(header.data(), header.size()); },
            [this](size_t i) {
                write(static_cast<const char *>(snapshot->data(i)), snapshot->bytes(i));
            });
        target->commit();
        tell_lacks(call);
    } catch (...) {
        failure = std::current_exception();
    }
    target.reset();
    snapshot = {};
    work->finish(std::move(failure));
}

Ref<Work> current_save()
{
    const std::lock_guard lock(background_writer.mutex);
    if (background_writer.process != getpid()) return nullptr;
    return background_writer.work;
}

// It has ended: its thread goes, and the next one may begin.
void retire(const Ref<Work> &work)
{
    std::thread thread;
    {
        const std::lock_guard lock(background_writer.mutex);
        if (background_writer.work.get() != work.get()) return;
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
    log(LogLevel::kError, "a save that nobody waited for failed: %s", text_of(failure).c_str());
}

[[noreturn]] void raise_for_former(const std::exception_ptr &failure, const char *call)
{
    constexpr const char *kText =
        "%s: nothing was saved, since the save before, which nobody waited for, failed: %s";
    try {
        std::rethrow_exception(failure);
    } catch (const Error &error) {
        throw Error(error.status(), format(kText, call, error.what()), error.native_code());
    } catch (const std::exception &error) {
        fail(YOKE_E_INTERNAL, kText, call, error.what());
    }
}

// Puts the save in the place that the former has left; false while another goes on.
bool take_place(const Ref<Work> &work)
{
    const std::lock_guard lock(background_writer.mutex);
    if (background_writer.process != getpid()) {
        new (&background_writer.thread) std::thread;  // which is in the parent alone
        new (&background_writer.work) Ref<Work>;
        background_writer.process = getpid();
    }
    if (background_writer.work.present()) return false;
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
    const Ref<Work> work = current_save();
    if (!work.present()) return;
    if (work->is_done_here())
        fail(
            YOKE_E_STATE,
            "%s: it is called by the thread that writes the save before, at the end of memory which that used; save from another thread",
            call);
    work->wait_for_end(-1);
    retire(work);
    const std::exception_ptr failure = work->take_untold();
    if (failure && !is_blocking) raise_for_former(failure, call);
    if (failure) log_failure(failure);
}

bool end_saves(double seconds) noexcept
{
    const Ref<Work> work = current_save();
    if (!work.present()) return true;
    if (!work->wait_for_end(seconds)) return false;
    retire(work);
    if (const std::exception_ptr failure = work->take_untold()) log_failure(failure);
    return true;
}

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
    const auto save = std::make_shared<Save>(
        Save{std::move(target), std::move(files), std::move(snapshot), work, call});
    while (!take_place(work)) wait_for_save(call, false);
    held.is_begun = true;
    std::thread thread;
    if (const std::string why = start_thread(thread, [save] { save->run(); }); !why.empty()) {
        log(LogLevel::kWarn,
            "%s: the system gives no thread (%s); the call returns when all is written", call,
            why.c_str());
        save->run();
    }
    const std::lock_guard lock(background_writer.mutex);
    if (background_writer.work.get() == work.get())
        background_writer.thread = std::move(thread);
    else if (thread.joinable())
        thread.detach();  // another thread has seen its end already
    return work;
}

}  // namespace yoke
