// awaited_dumps.h: dumps of living ranks after a failure in their group.
//
// A lost rank's connections close, so the other ranks of the group find the loss and dump their last calls. If the
// launcher sent TERM at once, these ranks would end before the dumps for `yoke hang` are written.
#pragma once

#include "core/base/deadline.h"

#include <ctime>
#include <string>
#include <vector>

namespace yoke {

class AwaitedDumps {
public:
    // Begins the wait for dumps: for 3 s, or for `most_s` if that is less.
    explicit AwaitedDumps(double most_s);

    // Returns whether every mark file was touched since a second before this object was made, or the time is over.
    // Ranks touch marks after their dumps.
    bool are_over(const std::vector<std::string> &marks) const;
    const Deadline &end() const noexcept { return end_; }

private:
    bool is_fresh(const std::string &mark) const;

    timespec since_{};
    Deadline end_;
};

}  // namespace yoke
