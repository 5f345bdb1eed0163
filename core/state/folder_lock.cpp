#include "core/state/folder_lock.h"

#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/state/lacks.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <set>

namespace yoke {

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
    mark_process_used();  // so that a child closes the lock's file, whatever else the process used
    file_ =
        Descriptor(file_calls().open(AT_FDCWD, path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!file_.is_open()) fail_io(call, "lock", path_, errno);
    take(call, folder);
    write_owner(call);
    on_fork_child(forget_locks);
    const std::lock_guard lock(locks.mutex);
    locks.all.insert(this);
}

void FolderLock::take(const char *call, const std::string &folder) const
{
    if (file_calls().flock(file_.get(), LOCK_EX | LOCK_NB) == 0) return;
    const int error = errno;
    // EACCES: error of CIFS if another machine has the lock.
    if (error == EWOULDBLOCK || error == EACCES) refuse(call, folder);
    if (!is_lacking(Lack::kLock, error)) fail_io(call, "lock", path_, error);
    note_lack(Lack::kLock, file_, error);
}

void FolderLock::write_owner(const char *call) const
{
    const std::string text = format("%-*d\n", kPidText - 1, static_cast<int>(owner_));
    const ssize_t done = file_calls().pwrite(file_.get(), text.data(), text.size(), 0);
    if (done != kPidText) fail_io(call, "lock", path_, done < 0 ? errno : ENOSPC);
}

void FolderLock::refuse(const char *call, const std::string &folder) const
{
    char text[kPidText + 1] = {};
    const ssize_t got = file_calls().pread(file_.get(), text, kPidText, 0);
    const int process = got > 0 ? atoi(text) : 0;
    const std::string who = process ? format("process %d", process) : "another process";
    fail(
        YOKE_E_STATE,
        "%s: %s%s already writes to '%s', and only one process may write there; end that process, or name another folder",
        call, who.c_str(), process == getpid() ? " (this one)" : "", folder.c_str());
}

bool FolderLock::is_in_place(const char *call) const
{
    struct stat ours {
    }, there{};
    if (file_calls().file_status(file_.get(), &ours) != 0) fail_io(call, "look at", path_, errno);
    if (file_calls().status(AT_FDCWD, path_.c_str(), &there, 0) != 0) {
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
