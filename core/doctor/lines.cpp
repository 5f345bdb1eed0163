#include "core/doctor/lines.h"

#include <algorithm>
#include <string_view>

namespace yoke::doctor {

std::string stripped(const std::string &text)
{
    constexpr const char *kBlanks = " \t\r\n\0";
    const size_t first = text.find_first_not_of(std::string_view(kBlanks, 5));
    if (first == text.npos) return "";
    return text.substr(first, text.find_last_not_of(std::string_view(kBlanks, 5)) - first + 1);
}

std::vector<std::string> lines_of(const std::string &text)
{
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        lines.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return lines;
}

}  // namespace yoke::doctor
