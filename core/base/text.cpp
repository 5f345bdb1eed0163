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

std::vector<const char *> c_strings(const std::vector<std::string> &texts)
{
    std::vector<const char *> strings;
    for (const std::string &text : texts) strings.push_back(text.c_str());
    return strings;
}

}  // namespace yoke
