// dump_failure.h: the dump of a group that fails. What it tells is taken before the group's calls end, and written
// behind that, in a thread of its own: a slow disk keeps no other rank from learning the cause.
#pragma once

#include "core/comm/dump.h"

#include <future>

namespace yoke {

// In a file that is whole or as it was.
void write_dump(const Dump &dump, const std::string &path);

class FailureDump {
public:
    explicit FailureDump(const char *folder)
        : folder_(folder ? folder : "") {}  // null: none is wanted
    bool is_wanted() const noexcept { return !folder_.empty(); }
    void take(Dump dump) { dump_ = std::move(dump); }
    // Ready once it is written, or could not be, which is logged; not valid where none is wanted.
    std::shared_future<void> written();
    void write() noexcept;

private:
    const std::string folder_;
    Dump dump_;
    std::promise<void> written_;
};

}  // namespace yoke
