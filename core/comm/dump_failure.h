// dump_failure.h: dump of a failing group. The content is taken before the group's calls end. A separate thread
// writes the file after that, so a slow disk does not delay the cause on other ranks.
#pragma once

#include "core/comm/dump.h"

#include <exception>
#include <future>
#include <memory>
#include <string>

namespace yoke {

// Writes the dump to the file `path`. On failure raises the error, and an existing file stays as it was.
void write_dump(const Dump &dump, const std::string &path);
void log_no_dump(const std::exception &why) noexcept;

class FailureDump {
public:
    FailureDump() = default;  // no dump is wanted
    FailureDump(const char *folder, Dump dump);
    // Returns a future that is ready after the write, or after a logged failure. Returns an invalid future if no dump
    // is wanted. Call only once.
    std::shared_future<void> written() const;
    void write() const noexcept;

private:
    struct Writing {
        const std::string folder;
        const Dump dump;
        std::promise<void> done = {};
    };
    std::shared_ptr<Writing> writing_;
};

}  // namespace yoke
