#include "core/doctor/log.h"

#include "core/doctor/lines.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace yoke::doctor {

namespace {

bool holds_any(const std::string &line, std::initializer_list<const char *> words)
{
    return std::any_of(words.begin(), words.end(),
                       [&](const char *word) { return line.find(word) != line.npos; });
}

// Returns the length of syslog's header before "kernel: ", "sudo: ", …: "Nov 22 01:02:03 host " or
// "2026-11-22T01:02:03.4+00:00 host ". Returns 0 if there is no header.
size_t header_length(const std::string &line)
{
    const auto is_digit = [&](size_t at) {
        return at < line.size() && isdigit(static_cast<unsigned char>(line[at]));
    };
    size_t end = 0;
    if (line.size() > 16 && is_digit(7) && is_digit(8) && line[9] == ':' && line[12] == ':')
        end = 15;
    else if (is_digit(0) && is_digit(3) && line[4] == '-' && line.find('T') == 10)
        end = line.find(' ');
    else
        return 0;
    if (end == line.npos || end >= line.size()) return 0;
    const size_t host = line.find(' ', end + 1);
    return host == line.npos ? 0 : host + 1;
}

bool is_of_kernel(const std::string &line)
{
    const size_t start = header_length(line);
    if (start > 0 && line.compare(start, 7, "kernel:") != 0) return false;
    return !holds_any(line, {"ommand line", "audit:", "audit("});
}

// Masks the program's name in a line about an Xid: "NVRM: Xid (PCI:0000:43:00): 13, pid=812, name=secret job, Ch
// 00000008". The name ends with the next comma.
std::string masked(std::string line)
{
    if (line.find("Xid") == line.npos) return line;
    constexpr std::string_view kKey = "name=";
    for (size_t at = 0; (at = line.find(kKey, at)) != line.npos;) {
        at += kKey.size();
        line.replace(at, std::min(line.find(", ", at), line.size()) - at, "PROGRAM");
    }
    return line;
}

}  // namespace

std::string of_interest(const std::string &log)
{
    std::string kept;
    for (const std::string &line : lines_of(log))
        if (holds_any(line,
                      {"NVRM", "nvidia", "fallen off", "PM: suspend", "thunderbolt", "AER"}) &&
            is_of_kernel(line))
            kept += masked(line) + "\n";
    return kept;
}

std::string since_start(const std::string &log)
{
    const size_t start = log.rfind("Linux version ");
    if (start == log.npos) return "";
    return log.substr(log.rfind('\n', start) + 1);
}

std::string text_of_record(const std::string &record)
{
    const size_t start = record.find(';');
    // The number before the first comma is 8 * facility + level; facility 0 is the kernel.
    if (start == record.npos || atoi(record.c_str()) >= 8) return "";
    return record.substr(start + 1, record.find('\n', start) - start - 1) + "\n";
}

}  // namespace yoke::doctor
