#include "core/launch/awaited_dumps.h"

#include <sys/stat.h>

#include <algorithm>

namespace yoke {

namespace {

// Ranks without a group write no dump, and ended ranks write none. The wait for dumps is therefore short.
constexpr double kMost_s = 3;
// Ranks may learn of the end these seconds before the launcher does.
constexpr time_t kEarlier_s = 1;

bool is_before(const timespec &a, const timespec &b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

}  // namespace

AwaitedDumps::AwaitedDumps(double most_s) : end_(Deadline::after(std::min(most_s, kMost_s)))
{
    clock_gettime(CLOCK_REALTIME, &since_);
    since_.tv_sec -= kEarlier_s;
}

bool AwaitedDumps::is_fresh(const std::string &mark) const
{
    struct stat about;
    return stat(mark.c_str(), &about) == 0 && !is_before(about.st_mtim, since_);
}

bool AwaitedDumps::are_over(const std::vector<std::string> &marks) const
{
    return end_.has_passed() ||
           std::ranges::all_of(marks, [this](const std::string &mark) { return is_fresh(mark); });
}

}  // namespace yoke
