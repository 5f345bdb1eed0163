// lines.h: texts of files, cut as the checks look at them.
#pragma once

#include <string>
#include <vector>

namespace yoke::doctor {

std::vector<std::string> lines_of(const std::string &text);

}  // namespace yoke::doctor
