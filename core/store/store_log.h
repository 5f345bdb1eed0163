// store_log.h: the file of a store: changes one behind the other, each whole or not there.
#pragma once

#include "core/store/socket.h"

#include <functional>
#include <string>
#include <string_view>

namespace yoke {

// One process's view of it. A writer's steps are lock, read_on, append, unlock; whoever only reads needs no lock.
class StoreLog {
public:
    // Whether a change sets the key or removes it; the first one names the run.
    enum class Change : uint32_t { kRun = 1, kSet, kRemove };
    using OnChange =
        std::function<void(Change change, std::string_view key, std::string_view value)>;

    StoreLog(std::string path, const std::string &run, Deadline deadline);
    ~StoreLog();
    StoreLog(const StoreLog &) = delete;
    StoreLog &operator=(const StoreLog &) = delete;

    // What has come since it was last called. Whether there was anything.
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
    uint64_t read_ = 0;  // the end of the last whole change that was read
};

}  // namespace yoke
