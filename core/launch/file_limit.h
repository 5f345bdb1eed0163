// file_limit.h: limit of open files of a process with ranks. Each rank takes three files.
//
// The limit belongs to the process, and several runs may be active at once. So the limit covers all runs, and after
// the last run the former limit returns.
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

    // Returns the limit without any run. Ranks get this limit.
    rlim_t before() const noexcept { return before_; }

private:
    const int32_t ranks_;
    rlim_t before_ = 0;
};

}  // namespace yoke
