// split.h: subgroups of a group. Each subgroup is a group, with its own prefix for its keys.
#pragma once

#include "core/base/refcount.h"
#include "core/comm/failure.h"
#include "core/comm/making.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace yoke {

class Group;

// Splits of a group, counted alike on all ranks. There is no lock.
class Split {
public:
    Split(const Members &members, const GroupOptions &options, Failure &failure)
        : members_(members), options_(options), failure_(failure)
    {
    }

    // Returns the group of the ranks with this color, in the order of their keys, then of their ranks; null for a
    // negative color. `given`: color and key of each rank, alike on all ranks.
    Ref<Group> make(int32_t color, const std::vector<int64_t> &given);

private:
    Members part_of(int32_t color, const std::vector<int64_t> &given,
                    const std::string &name) const;
    Ref<Group> make_part(const Members &part);

    const Members &members_;
    const GroupOptions &options_;
    Failure &failure_;
    std::atomic<uint64_t> count_{0};
};

}  // namespace yoke
