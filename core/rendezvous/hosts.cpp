// The host of rank 0, read from the variables of Slurm and Open MPI.
#include "core/base/error.h"
#include "core/rendezvous/environment.h"

namespace yoke {

namespace {

[[noreturn]] void fail_list(std::string_view list)
{
    fail(
        YOKE_E_VALUE,
        "the list of nodes '%s' is not in the form of Slurm, such as node[01-03,7],gpu1; set MASTER_ADDR to rank 0's host",
        std::string(list).c_str());
}

bool is_name(std::string_view text)
{
    return text.find_first_of("[] \t;:/") == text.npos;
}

// Returns the first number of "01-03,7": the digits in front, zeros included. Raises YOKE_E_VALUE if there is no such
// number.
std::string_view first_number(std::string_view range, std::string_view list)
{
    const size_t end = range.find_first_not_of("0123456789");
    const bool goes_on = end == range.npos || range[end] == '-' || range[end] == ',';
    if (range.empty() || end == 0 || !goes_on) fail_list(list);
    return range.substr(0, end);
}

}  // namespace

std::string first_slurm_host(std::string_view list)
{
    std::string host;
    std::string_view left = list;
    while (!left.empty() && left[0] != ',') {
        const size_t end = std::min(left.find_first_of("[,"), left.size());
        if (!is_name(left.substr(0, end))) fail_list(list);
        host += left.substr(0, end);
        left.remove_prefix(end);
        if (left.empty() || left[0] == ',') break;
        const size_t close = left.find(']');
        if (close == left.npos) fail_list(list);
        host += first_number(left.substr(1, close - 1), list);
        left.remove_prefix(close + 1);
    }
    if (host.empty()) fail_list(list);
    return host;
}

std::vector<std::string> hosts_of_hnp(std::string_view uri)
{
    std::vector<std::string> hosts;
    while (!uri.empty()) {
        const std::string_view part = uri.substr(0, uri.find(';'));
        uri.remove_prefix(std::min(part.size() + 1, uri.size()));
        const size_t scheme = part.find("://"), port = part.rfind(':');
        const bool is_tcp = part.substr(0, scheme) == "tcp" || part.substr(0, scheme) == "tcp6";
        if (scheme == part.npos || !is_tcp || port <= scheme) continue;
        std::string_view names = part.substr(scheme + 3, port - scheme - 3);
        if (names.size() > 1 && names.front() == '[' && names.back() == ']')
            names = names.substr(1, names.size() - 2);
        while (!names.empty()) {
            const std::string_view name = names.substr(0, names.find(','));
            names.remove_prefix(std::min(name.size() + 1, names.size()));
            if (!name.empty()) hosts.emplace_back(name);
        }
    }
    return hosts;
}

}  // namespace yoke
