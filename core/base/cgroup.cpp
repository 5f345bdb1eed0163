#include "core/base/cgroup.h"

#include "core/base/text.h"

#include "core/base/config.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace yoke {

namespace {

// Returns the number at the start of a text, or `missing` if the text begins without a number ("max").
template <class T>
T leading_number(std::string_view text, T missing)
{
    T value{};
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    return problem == std::errc() ? value : missing;
}

// Returns the processors of a cpu.max: 2 for "200000 100000", 0 (no limit) for "max 100000" or an unreadable file.
double quota_v2(const std::string &folder)
{
    const std::string text = file_text(folder + "/cpu.max");
    const size_t space = text.find(' ');
    if (space == std::string::npos) return 0;
    const double quota = leading_number(text, 0.0);
    const double period = leading_number(std::string_view(text).substr(space + 1), 0.0);
    return quota > 0 && period > 0 ? quota / period : 0;
}

double quota_v1(const std::string &folder)
{
    const double quota = leading_number(file_text(folder + "/cpu.cfs_quota_us"), 0.0);
    const double period = leading_number(file_text(folder + "/cpu.cfs_period_us"), 0.0);
    return quota > 0 && period > 0 ? quota / period : 0;
}

// Returns the sum of the entries "KEY number" of a memory.stat with these keys.
uint64_t sum_of(const std::string &stat, std::initializer_list<std::string_view> keys)
{
    std::istringstream lines(stat);
    uint64_t sum = 0, value = 0;
    for (std::string key; lines >> key >> value;)
        if (std::find(keys.begin(), keys.end(), key) != keys.end()) sum += value;
    return sum;
}

Groups::Memory memory_of(const std::string &folder, bool version2)
{
    const std::string file = folder + (version2 ? "/memory.max" : "/memory.limit_in_bytes");
    const uint64_t limit = leading_number<uint64_t>(file_text(file), 0);
    // Version 1 writes "no limit" as the largest number of whole pages.
    if (limit == 0 || limit >= uint64_t{1} << 62) return {};
    const uint64_t used = leading_number<uint64_t>(
        file_text(folder + (version2 ? "/memory.current" : "/memory.usage_in_bytes")), 0);
    const std::string stat = file_text(folder + "/memory.stat");
    const uint64_t files = version2 ? sum_of(stat, {"active_file", "inactive_file"})
                                    : sum_of(stat, {"total_active_file", "total_inactive_file"});
    return {limit, used > files ? used - files : 0, file};
}

}  // namespace

Groups Groups::of_process()
{
    return {file_text("/proc/self/cgroup"), "/sys/fs/cgroup"};
}

// Reads lines such as "7:cpu,cpuacct:/docker/4f5e" and, of version 2, "0::/user.slice". Visits the folders of each
// path, the longest first.
void Groups::each(const char *controller,
                  const std::function<void(const std::string &folder, bool version2)> &visit) const
{
    std::istringstream lines(proc);
    for (std::string line; std::getline(lines, line);) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const bool version2 = line.compare(0, 3, "0::") == 0;
        const auto names = split_list(std::string_view(line).substr(first + 1, second - first - 1));
        if (!version2 && std::find(names.begin(), names.end(), controller) == names.end()) continue;
        std::string path = line.substr(second + 1);
        if (path.empty() || path.front() != '/') continue;
        while (!path.empty() && path.back() == '/') path.pop_back();
        const std::string root = version2 ? mount : mount + "/" + controller;
        for (;; path.erase(path.rfind('/'))) {
            visit(root + path, version2);
            if (path.empty()) break;
        }
    }
}

double Groups::processors() const
{
    double least = 0;
    each("cpu", [&least](const std::string &folder, bool version2) {
        const double quota = version2 ? quota_v2(folder) : quota_v1(folder);
        if (quota > 0 && (least == 0 || quota < least)) least = quota;
    });
    return least;
}

Groups::Memory Groups::memory() const
{
    Memory least;
    each("memory", [&least](const std::string &folder, bool version2) {
        const Memory found = memory_of(folder, version2);
        if (found.limit && (!least.limit || found.left() < least.left())) least = found;
    });
    return least;
}

}  // namespace yoke
