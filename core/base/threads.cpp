// How many threads CPU work may use.
#include "core/base/config.h"
#include "core/base/error.h"
#include "core/base/thread_state.h"

#include <sched.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace yoke {

namespace {

constexpr int32_t kMaxThreads = 1024;

std::atomic<int32_t> process_threads{0};  // 0: not known yet

std::string file_text(const std::string &path)
{
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

// "200000 100000" or "max 100000".
double quota_v2(const std::string &folder)
{
    double quota = 0, period = 0;
    const std::string text = file_text(folder + "/cpu.max");
    return sscanf(text.c_str(), "%lf %lf", &quota, &period) == 2 && period > 0 ? quota / period : 0;
}

double quota_v1(const std::string &folder)
{
    const double quota = atof(file_text(folder + "/cpu.cfs_quota_us").c_str());
    const double period = atof(file_text(folder + "/cpu.cfs_period_us").c_str());
    return quota > 0 && period > 0 ? quota / period : 0;
}

// The least quota of a cgroup and all above it. Inside a container the path that the kernel names
// may not exist below the mount, whose root is then the container's own cgroup.
double least_quota(const std::string &mount, std::string path,
                   double (*quota_of)(const std::string &))
{
    double least = 0;
    for (;;) {
        const double quota = quota_of(mount + path);
        if (quota > 0 && (least == 0 || quota < least)) least = quota;
        if (path.empty()) return least;
        path.erase(path.rfind('/'));
    }
}

int32_t allowed_cores()
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
    return 1;  // more cores than cpu_set_t holds, or no /proc: one thread is never wrong
}

int32_t default_threads()
{
    if (const char *text = config("YOKE_NUM_THREADS")) return atoi(text);
    if (const int32_t threads = detail::leading_count(getenv("OMP_NUM_THREADS"))) return threads;
    const double quota = detail::cgroup_quota(file_text("/proc/self/cgroup"), "/sys/fs/cgroup");
    const int32_t cores = allowed_cores();
    return quota > 0 ? std::clamp(static_cast<int32_t>(std::floor(quota)), 1, cores) : cores;
}

}  // namespace

namespace detail {

double cgroup_quota(const std::string &proc, const std::string &mount)
{
    std::istringstream lines(proc);
    double least = 0;
    for (std::string line; std::getline(lines, line);) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::vector<std::string> controllers =
            split_list(std::string_view(line).substr(first + 1, second - first - 1));
        std::string path = line.substr(second + 1);
        if (path.empty() || path.front() != '/') continue;
        while (!path.empty() && path.back() == '/') path.pop_back();
        double quota = 0;
        if (line.compare(0, 3, "0::") == 0)
            quota = least_quota(mount, path, quota_v2);
        else if (std::find(controllers.begin(), controllers.end(), "cpu") != controllers.end())
            quota = least_quota(mount + "/cpu", path, quota_v1);
        if (quota > 0 && (least == 0 || quota < least)) least = quota;
    }
    return least;
}

int32_t leading_count(const char *text) noexcept
{
    if (!text) return 0;
    char *end = nullptr;
    const long threads = strtol(text, &end, 10);
    const bool good = end != text && (*end == '\0' || *end == ',') && threads > 0;
    return good ? static_cast<int32_t>(std::min<long>(threads, kMaxThreads)) : 0;
}

}  // namespace detail

int32_t num_threads()
{
    if (const int32_t own = thread_state().host_threads) return own;
    int32_t threads = process_threads.load(std::memory_order_relaxed);
    if (threads == 0) {
        // What another thread has set meanwhile stays.
        const int32_t found = default_threads();
        if (process_threads.compare_exchange_strong(threads, found)) threads = found;
    }
    return threads;
}

void set_num_threads(int32_t threads)
{
    if (threads < 0 || threads > kMaxThreads)
        fail(YOKE_E_VALUE, "set_num_threads: the number is %d; use 1 to %d, or 0 for the default",
             threads, kMaxThreads);
    process_threads.store(threads, std::memory_order_relaxed);
}

}  // namespace yoke
