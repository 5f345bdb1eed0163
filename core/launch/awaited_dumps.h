// awaited_dumps.h: the dumps that living ranks write when one of their group has failed, before a launcher ends these
// ranks.
//
// Ranks learn of a lost rank by themselves, since its connections close. TERM at once would end them before they have
// written what `yoke hang` reads.
#pragma once

#include "core/base/deadline.h"

#include <ctime>
#include <string>
#include <vector>

namespace yoke {

class AwaitedDumps {
public:
    // Awaits dumps for a few seconds, or for `most_s` if that is less.
    explicit AwaitedDumps(double most_s);

    // Whether each of these files, which ranks touch behind their dumps, was touched since, or the time is over.
    bool are_over(const std::vector<std::string> &marks) const;
    const Deadline &end() const noexcept { return end_; }

private:
    bool is_fresh(const std::string &mark) const;

    timespec since_{};
    Deadline end_;
};

}  // namespace yoke
