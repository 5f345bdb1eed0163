// file_limit.h: how many files this process may have open while it has ranks: each takes three.
//
// The limit is the process's, and runs may be several at once: it has room for all of them, and with the last one the
// former limit comes back.
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace yoke {

class FileLimit {
public:
    explicit FileLimit(int32_t ranks);
    ~FileLimit();
    FileLimit(const FileLimit &) = delete;
    FileLimit &operator=(const FileLimit &) = delete;

    // Without any run, for ranks.
    rlim_t before() const noexcept { return before_; }

private:
    const int32_t ranks_;
    rlim_t before_ = 0;
};

}  // namespace yoke
