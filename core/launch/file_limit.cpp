#include "core/launch/file_limit.h"

#include "core/base/fork.h"
#include "core/base/immortal.h"

#include <algorithm>

namespace yoke {

namespace {

struct FilesNeeded {
    Mutex mutex{LockRank::kOther};
    rlim_t ranks = 0;         // sum over all runs
    struct rlimit before {};  // limit before the first run
};
FilesNeeded &files_needed = immortal<FilesNeeded>();

void make_room()
{
    constexpr rlim_t kEach = 3, kOthers = 256;
    struct rlimit now = files_needed.before;
    const rlim_t wanted = files_needed.ranks == 0 ? 0 : kEach * files_needed.ranks + kOthers;
    now.rlim_cur = std::min(std::max(wanted, now.rlim_cur), now.rlim_max);
    setrlimit(RLIMIT_NOFILE, &now);
}

}  // namespace

FileLimit::FileLimit(int32_t ranks) : ranks_(ranks)
{
    const std::lock_guard lock(files_needed.mutex);
    if (files_needed.ranks == 0) getrlimit(RLIMIT_NOFILE, &files_needed.before);
    files_needed.ranks += static_cast<rlim_t>(ranks_);
    before_ = files_needed.before.rlim_cur;
    make_room();
}

FileLimit::~FileLimit()
{
    const std::lock_guard lock(files_needed.mutex);
    files_needed.ranks -= static_cast<rlim_t>(ranks_);
    make_room();
}

}  // namespace yoke
