// folder_lock.h: the lock of a folder that states are saved to.
#pragma once

#include "core/state/file_calls.h"

#include <string>

namespace yoke {

// Lock by which a folder has a single writer: while this lives, another one is refused with YOKE_E_STATE and told the
// process that writes there. Where the file system has no locks, nobody is refused: core/state/lacks.h.
class FolderLock {
public:
    FolderLock(const char *call, const std::string &folder);
    ~FolderLock();
    FolderLock(const FolderLock &) = delete;
    FolderLock &operator=(const FolderLock &) = delete;

    // Whether it locks the folder that is at its path now: one that was removed and made anew is another's to lock.
    bool is_in_place(const char *call) const;
    // In a forked child: a worker that outlives its parent must not hold the folder for it.
    void forget() { file_.close(); }

private:
    void take(const char *call, const std::string &folder) const;
    void write_owner(const char *call) const;
    [[noreturn]] void refuse(const char *call, const std::string &folder) const;

    std::string path_;
    Descriptor file_;
    pid_t owner_;  // a forked child does not let go of it
};

}  // namespace yoke
