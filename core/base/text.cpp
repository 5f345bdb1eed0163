#include "core/base/text.h"

#include <cmath>
#include <fstream>
#include <sstream>

namespace yoke {

std::string file_text(const std::string &path)
{
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

ScaledBytes scaled_bytes(double bytes)
{
    static constexpr const char *kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;
    while (std::fabs(bytes) >= 1024 && unit + 1 < std::size(kUnits)) bytes /= 1024, ++unit;
    return {bytes, kUnits[unit]};
}

bool read_number(std::string_view text, double *number, std::string *rest)
{
    const char *last = text.data() + text.size();
    const auto [end, problem] =
        std::from_chars(text.data(), last, *number, std::chars_format::fixed);
    if (problem != std::errc() || !std::isfinite(*number) || *number < 0) return false;
    *rest = std::string(end, last);
    rest->erase(0, std::min(rest->find_first_not_of(' '), rest->size()));
    return true;
}

std::string cut(std::string_view text, size_t most)
{
    if (text.size() <= most) return std::string(text);
    const std::string end = " ... (cut: it has " + std::to_string(text.size()) + " bytes)";
    return std::string(text.substr(0, whole_characters(text, most - end.size()))) + end;
}

std::vector<const char *> c_strings(const std::vector<std::string> &texts)
{
    std::vector<const char *> strings;
    for (const std::string &text : texts) strings.push_back(text.c_str());
    return strings;
}

}  // namespace yoke
