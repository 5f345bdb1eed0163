#include "core/launch/file_limit.h"

#include "core/base/fork.h"
#include "core/base/immortal.h"

#include <algorithm>

namespace yoke {

namespace {

struct State {
    Mutex mutex{LockRank::kOther};
    rlim_t ranks = 0;         // of all runs
    struct rlimit before {};  // when the first of them came
};
State &state = immortal<State>();

void make_room()
{
    constexpr rlim_t kEach = 3, kOthers = 256;
    struct rlimit now = state.before;
    const rlim_t wanted = state.ranks == 0 ? 0 : kEach * state.ranks + kOthers;
    now.rlim_cur = std::min(std::max(wanted, now.rlim_cur), now.rlim_max);
    setrlimit(RLIMIT_NOFILE, &now);
}

}  // namespace

FileLimit::FileLimit(int32_t ranks) : ranks_(ranks)
{
    const std::lock_guard lock(state.mutex);
    if (state.ranks == 0) getrlimit(RLIMIT_NOFILE, &state.before);
    state.ranks += static_cast<rlim_t>(ranks_);
    before_ = state.before.rlim_cur;
    make_room();
}

FileLimit::~FileLimit()
{
    const std::lock_guard lock(state.mutex);
    state.ranks -= static_cast<rlim_t>(ranks_);
    make_room();
}

}  // namespace yoke
