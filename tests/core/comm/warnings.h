// warnings.h: warnings about connections between ranks, collected from this process while an object lives.
#pragma once

#include "core/base/log.h"

#include <cstring>
#include <mutex>
#include <string>

namespace yoke::test {

class Warnings {
public:
    Warnings() : id_(add_log_callback(note, this, nullptr)) {}
    ~Warnings() { remove_log_callback(id_); }
    Warnings(const Warnings &) = delete;
    Warnings &operator=(const Warnings &) = delete;
    std::string text() const
    {
        const std::lock_guard lock(mutex_);
        return text_;
    }

private:
    static void note(void *user, int32_t level, const char *message)
    {
        const bool is_of_ranks = strstr(message, "comm.init: ") || strstr(message, "rank 0");
        if (level > static_cast<int32_t>(LogLevel::kWarn) || !is_of_ranks) return;
        auto *const self = static_cast<Warnings *>(user);
        const std::lock_guard lock(self->mutex_);
        self->text_ += std::string(message) + "\n";
    }
    mutable std::mutex mutex_;
    std::string text_;
    const int64_t id_;
};

}  // namespace yoke::test
