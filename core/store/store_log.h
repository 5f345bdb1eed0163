// store_log.h: the file of a store: changes one behind the other, each whole or not there.
#pragma once

#include "core/store/socket.h"

#include <functional>
#include <string>
#include <string_view>

namespace yoke {

// Log of a process. The steps of a writer are lock, read_on, append, unlock; a reader needs no lock.
class StoreLog {
public:
    // Kind of a change: kSet sets the key, kRemove removes the key. The first change is kRun, the run's name.
    enum class Change : uint32_t { kRun = 1, kSet, kRemove };
    using OnChange =
        std::function<void(Change change, std::string_view key, std::string_view value)>;

    StoreLog(std::string path, const std::string &run, Deadline deadline);
    ~StoreLog();
    StoreLog(const StoreLog &) = delete;
    StoreLog &operator=(const StoreLog &) = delete;

    // Reads the changes since the last call, and calls on_change for each whole change. Returns whether the file has
    // grown since. Raises YOKE_E_IO if the file cannot be read.
    bool read_on(const OnChange &on_change);
    // Tries to lock the file against writers of other processes; does not exclude threads of this process. Returns
    // whether the lock was free. Raises YOKE_E_TIMEOUT if the lock is taken and the deadline has passed.
    bool lock(Deadline deadline);
    void unlock() noexcept;
    // Appends a change, and first cuts off a change left half written. Called under the lock, after read_on. Raises
    // YOKE_E_VALUE if the file would become too long, and YOKE_E_IO if the system refuses.
    void append(Change change, std::string_view key, std::string_view value);
    const std::string &path() const noexcept { return path_; }
    bool is_open() const noexcept { return file_.present(); }

private:
    bool open(const std::string &run);
    void check_ours();
    void check_run(const std::string &run);
    [[noreturn]] void fail_io(const char *what) const;

    const std::string path_;
    Socket file_;
    uint64_t read_ = 0;  // end of the last whole change that was read
};

}  // namespace yoke
