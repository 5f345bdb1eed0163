// awaited_dumps.h: the dumps that living ranks write when one of their group has failed, before a launcher ends these
// ranks.
//
// Ranks learn of a lost rank by themselves, since its connections close. TERM at once would end them before they have
// written what `yoke hang` reads.
#pragma once

#include "core/base/deadline.h"

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

namespace yoke {

class AwaitedDumps {
public:
    // Awaits dumps in the folder that YOKE_COMM_DUMP names, for a few seconds or `most_s` at most.
    AwaitedDumps(const char *folder, double most_s);

    // Whether each of these ranks has written one since, or the time is over.
    bool are_over(const std::vector<int32_t> &ranks) const;
    const Deadline &end() const noexcept { return end_; }

private:
    bool has_dump_of(int32_t rank) const;

    std::string folder_;
    timespec since_{};
    Deadline end_;
};

}  // namespace yoke
