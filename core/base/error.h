// error.h: how a failure travels through the core, and where its details are kept for the caller.
//
// Inside the core a failure is an exception of type Error, raised by fail(). At the border of the C API,
// capi/src/guard.h turns it into a status code and the calling thread's last error. A message says what was asked, both
// values, and what to do.
#pragma once

#include "yoke/types.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace yoke {

// Returns a number for a failure; the first one is 1.
uint64_t new_failure_number() noexcept;

class Error : public std::exception {
public:
    Error(yoke_status status, std::string message, int64_t native_code = 0, std::string device = {})
        : status_(status),
          native_code_(native_code),
          message_(std::move(message)),
          device_(std::move(device))
    {
    }
    yoke_status status() const noexcept { return status_; }
    int64_t native_code() const noexcept { return native_code_; }
    const char *what() const noexcept override { return message_.c_str(); }
    // Returns the name of the call with which the message begins, "comm.init"; "" where it begins with none, or nobody
    // has said so.
    std::string_view call() const noexcept
    {
        return std::string_view(message_).substr(0, call_size_);
    }
    // Returns the message without that name.
    std::string_view text() const noexcept
    {
        constexpr size_t kBetween = 2;  // ": "
        const size_t front = call_size_ ? call_size_ + kBetween : 0;
        return std::string_view(message_).substr(std::min(front, message_.size()));
    }
    // Returns the number of the failure, which no other failure of the process has; copies share it.
    uint64_t number() const noexcept { return number_; }
    // Says that this tells a failure once more, which has a number already.
    Error &&telling(uint64_t number) &&
    {
        number_ = number;
        return std::move(*this);
    }
    // Says that the message begins with a name of so many bytes, and ": ".
    Error &&naming(size_t call_size) &&
    {
        call_size_ = call_size;
        return std::move(*this);
    }
    // The device on which it happened, "cuda:1"; "" for what has no device.
    const char *device() const noexcept { return device_.c_str(); }

private:
    yoke_status status_;
    int64_t native_code_;
    std::string message_, device_;
    size_t call_size_ = 0;
    uint64_t number_ = new_failure_number();
};

// What a call says that found no memory of the host's.
inline constexpr const char *kNoMemoryText =
    "the host has no memory left; free some or use smaller tensors";

// Raises Error with a printf-style message.
[[noreturn]] __attribute__((format(printf, 2, 3), cold, noinline)) void fail(yoke_status status,
                                                                             const char *format,
                                                                             ...);

// Raises Error whose message begins with the name of the call and ": ".
[[noreturn]] __attribute__((format(printf, 3, 4), cold, noinline)) void fail_in(const char *call,
                                                                                yoke_status status,
                                                                                const char *format,
                                                                                ...);

// printf into a std::string, for parts of messages.
__attribute__((format(printf, 1, 2), cold)) std::string format(const char *format, ...);

// The name of a status, "YOKE_E_VALUE"; "YOKE_E_?" for an unknown number.
const char *status_name(yoke_status status) noexcept;

// The calling thread's last error. Storing never fails; long messages are cut. It allocates only where the thread has
// no state yet; where there is no memory for one either, the last error is that.
void store_last_error(yoke_status status, const char *call, const char *message,
                      int64_t native_code, const char *device = "") noexcept;
const yoke_error *last_error() noexcept;

// A backend entry failed after it called host->set_error: raises what it stored there.
[[noreturn]] void rethrow_backend_error(yoke_status status, const char *what,
                                        const char *device = "");

// The message of the same failure, for callers that do not raise; it is forgotten here.
std::string take_backend_error(yoke_status status, const char *what);

// What host->set_error is: keeps the message until rethrow_backend_error picks it up.
yoke_status set_backend_error(yoke_status status, int64_t native_code,
                              const char *message) noexcept;

inline void check_backend(yoke_status status, const char *what, const char *device = "")
{
    if (status != YOKE_OK) [[unlikely]]
        rethrow_backend_error(status, what, device);
}

}  // namespace yoke
