// heard.h: the lines of the log during a test.
#pragma once

#include "core/base/log.h"

#include <cstdint>
#include <string>
#include <vector>

namespace yoke::test {

class Heard {
public:
    Heard() : id_(add_log_callback(hear, this, nullptr)) {}
    ~Heard() { remove_log_callback(id_); }
    Heard(const Heard &) = delete;
    Heard &operator=(const Heard &) = delete;

    std::vector<std::string> lines;
    std::vector<std::string> warnings;  // only the warnings

private:
    static void hear(void *user, int32_t level, const char *message)
    {
        auto &self = *static_cast<Heard *>(user);
        self.lines.push_back(message);
        if (level == static_cast<int32_t>(LogLevel::kWarn)) self.warnings.push_back(message);
    }
    int64_t id_;
};

}  // namespace yoke::test
