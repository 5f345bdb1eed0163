#include "core/launch/awaited_dumps.h"

#include "core/base/error.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>

namespace yoke {

namespace {

// A rank that is in no group, or does not run, writes no dump.
constexpr double kMost_s = 3;
// Ranks may learn of the end so many seconds before the launcher does.
constexpr time_t kEarlier_s = 1;

bool is_before(const timespec &a, const timespec &b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

}  // namespace

AwaitedDumps::AwaitedDumps(const char *folder, double most_s)
    : folder_(folder), end_(Deadline::after(std::min(most_s, kMost_s)))
{
    clock_gettime(CLOCK_REALTIME, &since_);
    since_.tv_sec -= kEarlier_s;
}

bool AwaitedDumps::has_dump_of(int32_t rank) const
{
    const std::unique_ptr<DIR, int (*)(DIR *)> folder(opendir(folder_.c_str()), closedir);
    if (!folder) return false;
    const std::string beginning = format("rank-%d-of-", rank);
    while (const dirent *entry = readdir(folder.get())) {
        const std::string name = entry->d_name;
        struct stat about;
        if (name.rfind(beginning, 0) == 0 &&
            fstatat(dirfd(folder.get()), name.c_str(), &about, 0) == 0 &&
            !is_before(about.st_mtim, since_))
            return true;
    }
    return false;
}

bool AwaitedDumps::are_over(const std::vector<int32_t> &ranks) const
{
    if (end_.has_passed()) return true;
    return std::all_of(ranks.begin(), ranks.end(),
                       [this](int32_t rank) { return has_dump_of(rank); });
}

}  // namespace yoke
