// folder_lock.h: the lock of a folder for saved states.
#pragma once

#include "core/state/file_calls.h"

#include <string>

namespace yoke {

// Lock that gives a folder a single writer. While the lock lives, any other writer is refused with YOKE_E_STATE, and
// the error names the locking process. If the file system has no locks, no writer is refused: core/state/lacks.h.
class FolderLock {
public:
    FolderLock(const char *call, const std::string &folder);
    ~FolderLock();
    FolderLock(const FolderLock &) = delete;
    FolderLock &operator=(const FolderLock &) = delete;

    // Returns whether the lock belongs to the folder now at its path. If the folder was removed and made again,
    // another process may lock the new folder.
    bool is_in_place(const char *call) const;
    // Closes the lock's file in a forked child, because a child may outlive its parent and must not keep the folder
    // locked.
    void forget() { file_.close(); }

private:
    void take(const char *call, const std::string &folder) const;
    void write_owner(const char *call) const;
    [[noreturn]] void refuse(const char *call, const std::string &folder) const;

    std::string path_;
    Descriptor file_;
    pid_t owner_;  // a forked child does not release the lock
};

}  // namespace yoke
