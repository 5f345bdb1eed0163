// lines.h: texts of files, cut for the checks.
#pragma once

#include <string>
#include <vector>

namespace yoke::doctor {

std::vector<std::string> lines_of(const std::string &text);

}  // namespace yoke::doctor
