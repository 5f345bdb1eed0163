#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/state/file_parts.h"
#include "core/state/files.h"
#include "core/state/lacks.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <set>

namespace yoke {

MappedFile::~MappedFile()
{
    if (data_) file_calls().munmap(data_, bytes_);
}

ReadFile::ReadFile(const char *call, std::string path) : ReadFile(call, AT_FDCWD, std::move(path))
{
}

ReadFile::ReadFile(const char *call, const Descriptor &folder, std::string name)
    : ReadFile(call, folder.get(), std::move(name))
{
}

ReadFile::ReadFile(const char *call, int folder, std::string path)
    : call_(call), path_(std::move(path)), file_(opened(folder)), status_(status_of(file_))
{
}

Descriptor ReadFile::opened(int folder) const
{
    // O_NONBLOCK: opening a pipe that nobody writes to must not hang before it is refused.
    Descriptor file(retried([&] {
        return file_calls().open(folder, path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    }));
    if (!file.is_open()) fail_io(call_, "open", path_, errno);
    return file;
}

ReadFile::Status ReadFile::status_of(const Descriptor &file) const
{
    struct stat status {};
    if (retried([&] { return file_calls().file_status(file.get(), &status); }) != 0)
        fail_io(call_, "read", path_, errno);
    if (S_ISDIR(status.st_mode)) fail_io(call_, "read", path_, EISDIR);
    if (!S_ISREG(status.st_mode))
        throw Error(YOKE_E_IO,
                    format("%s: '%s' is not a regular file; write the data to a file first", call_,
                           path_.c_str()),
                    EINVAL);
    return {static_cast<uint64_t>(status.st_size), status.st_dev, status.st_ino};
}

void ReadFile::rest()
{
    file_.close();
}

const Descriptor &ReadFile::awake(Descriptor &again) const
{
    if (file_.is_open()) return file_;
    again = opened(AT_FDCWD);
    if (!(status_of(again) == status_))
        throw Error(
            YOKE_E_IO,
            format("%s: another file took the place of '%s' while it was being read; load again",
                   call_, path_.c_str()),
            ESTALE);
    return again;
}

void ReadFile::read(uint64_t from, void *to, size_t bytes) const
{
    auto *at = static_cast<char *>(to);
    Descriptor again;
    const Descriptor &file = awake(again);
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = retried([&] {
            return file_calls().pread(file.get(), at + done, std::min(bytes - done, kMostAtOnce),
                                      static_cast<off_t>(from + done));
        });
        if (got < 0) fail_io(call_, "read", path_, errno);
        if (got == 0)
            throw Error(
                YOKE_E_IO,
                format(
                    "%s: '%s' ends early, at byte %llu of the %llu to read; write or fetch the file again",
                    call_, path_.c_str(), static_cast<unsigned long long>(from + done),
                    static_cast<unsigned long long>(from + bytes)),
                EIO);
        done += static_cast<size_t>(got);
    }
}

std::shared_ptr<MappedFile> ReadFile::map() const
{
    if (size() == 0) return std::make_shared<MappedFile>(nullptr, 0);
    Descriptor again;
    const Descriptor &file = awake(again);
    // No memory is set aside for pages that will be written: a file may be larger than what the machine has.
    void *data =
        file_calls().mmap(size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.get());
    if (data == MAP_FAILED) return nullptr;
    return std::make_shared<MappedFile>(data, size());
}

// ---- One writer a folder ----------------------------------------------------------------------------------------

namespace {

// The file is never truncated: a number is written over all of another.
constexpr int kPidText = 16;

struct Locks {
    Mutex mutex{LockRank::kOther};
    std::set<FolderLock *> all;
};

Locks &locks = immortal<Locks>();

void forget_locks()
{
    const std::lock_guard lock(locks.mutex);
    for (FolderLock *each : locks.all) each->forget();
    locks.all.clear();
}

}  // namespace

FolderLock::FolderLock(const char *call, const std::string &folder)
    : path_(folder + "/.lock"), owner_(getpid())
{
    mark_process_used();  // so that a child lets go of it, whatever else was used
    file_ = Descriptor(retried([&] {
        return file_calls().open(AT_FDCWD, path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    }));
    if (!file_.is_open()) fail_io(call, "lock", path_, errno);
    take(call, folder);
    write_owner(call);
    on_fork_child(forget_locks);
    const std::lock_guard lock(locks.mutex);
    locks.all.insert(this);
}

void FolderLock::take(const char *call, const std::string &folder) const
{
    if (retried([&] { return file_calls().flock(file_.get(), LOCK_EX | LOCK_NB); }) == 0) return;
    const int error = errno;
    // EACCES: what CIFS says where another host has it.
    if (error == EWOULDBLOCK || error == EACCES) refuse(call, folder);
    if (!is_lacking(Lack::kLock, error)) fail_io(call, "lock", path_, error);
    note_lack(Lack::kLock, file_, error);
}

void FolderLock::write_owner(const char *call) const
{
    const std::string text = format("%-*d\n", kPidText - 1, static_cast<int>(owner_));
    const ssize_t done =
        retried([&] { return file_calls().pwrite(file_.get(), text.data(), text.size(), 0); });
    if (done != kPidText) fail_io(call, "lock", path_, done < 0 ? errno : ENOSPC);
}

void FolderLock::refuse(const char *call, const std::string &folder) const
{
    char text[kPidText + 1] = {};
    const ssize_t got = retried([&] { return file_calls().pread(file_.get(), text, kPidText, 0); });
    const int process = got > 0 ? atoi(text) : 0;
    const std::string who = process ? format("process %d", process) : "another process";
    fail(YOKE_E_STATE,
         "%s: %s%s writes to '%s' already, and one alone may; end that one, or name another folder",
         call, who.c_str(), process == getpid() ? " (this one)" : "", folder.c_str());
}

bool FolderLock::is_in_place(const char *call) const
{
    struct stat ours {
    }, there{};
    if (retried([&] { return file_calls().file_status(file_.get(), &ours); }) != 0)
        fail_io(call, "look at", path_, errno);
    if (retried([&] { return file_calls().status(AT_FDCWD, path_.c_str(), &there, 0); }) != 0) {
        if (errno == ENOENT || errno == ENOTDIR) return false;
        fail_io(call, "look at", path_, errno);
    }
    return ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

FolderLock::~FolderLock()
{
    {
        const std::lock_guard lock(locks.mutex);
        locks.all.erase(this);
    }
    // Told to the system, not left to close: a child that is being forked may have the file open too.
    if (owner_ == getpid()) file_calls().flock(file_.get(), LOCK_UN);
}

}  // namespace yoke
