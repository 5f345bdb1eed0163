#include "core/select/told.h"

#include "core/base/fork.h"
#include "core/base/immortal.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace yoke {

namespace {

struct Told {
    Mutex mutex{LockRank::kOther};
    std::vector<std::string> all;
};
Told &told = immortal<Told>();

}  // namespace

bool detail::is_new(const std::string &text)
{
    const std::lock_guard lock(told.mutex);
    if (std::find(told.all.begin(), told.all.end(), text) != told.all.end()) return false;
    // A text may change from call to call, so a process that lives for months must not keep all texts.
    constexpr size_t kMost = 256;
    if (told.all.size() == kMost) told.all.erase(told.all.begin());
    told.all.push_back(text);
    return true;
}

}  // namespace yoke
