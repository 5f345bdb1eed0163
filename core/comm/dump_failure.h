// dump_failure.h: the dump of a group that fails. What it tells is taken before the group's calls end, and written
// behind that, in a thread of its own: a slow disk keeps no other rank from learning the cause.
#pragma once

#include "core/comm/dump.h"

#include <exception>
#include <future>
#include <memory>
#include <string>

namespace yoke {

// In a file that is whole or as it was.
void write_dump(const Dump &dump, const std::string &path);
void log_no_dump(const std::exception &why) noexcept;

class FailureDump {
public:
    FailureDump() = default;  // none is wanted
    FailureDump(const char *folder, Dump dump);
    // Ready once it is written, or could not be, which is logged; not valid where none is wanted. Asked for once.
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
