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
    // Kind of a change: kSet sets the key, kRemove removes it. The first change is kRun, the run's name.
    enum class Change : uint32_t { kRun = 1, kSet, kRemove };
    using OnChange =
        std::function<void(Change change, std::string_view key, std::string_view value)>;

    StoreLog(std::string path, const std::string &run, Deadline deadline);
    ~StoreLog();
    StoreLog(const StoreLog &) = delete;
    StoreLog &operator=(const StoreLog &) = delete;

    // Reads the changes since the last call. Returns whether there were any.
    bool read_on(const OnChange &on_change);
    // Against other writers; not against threads of this process. Whether it is free; YOKE_E_TIMEOUT behind the
    // deadline.
    bool lock(Deadline deadline);
    void unlock() noexcept;
    // Under the lock, after read_on.
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
