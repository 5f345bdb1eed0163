// error.h: how a failure travels through the core, and where its details are kept for the caller.
//
// Inside the core, a failure is an exception of type Error, raised by fail(). At the border of the C API,
// capi/src/guard.h turns the exception into a status code and the calling thread's last error. A message says the
// request, both values, and the remedy.
#pragma once

#include "yoke/types.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace yoke {

// Returns a number for a failure, unique in the process; the first number is 1.
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
    // Returns the name of the call at the start of the message, "comm.init"; "" if there is none, or naming() was not
    // called.
    std::string_view call() const noexcept
    {
        return std::string_view(message_).substr(0, call_size_);
    }
    // Returns the message without the name of the call.
    std::string_view text() const noexcept
    {
        constexpr size_t kBetween = 2;  // ": "
        const size_t front = call_size_ ? call_size_ + kBetween : 0;
        return std::string_view(message_).substr(std::min(front, message_.size()));
    }
    // Returns the number of the failure, unique in the process; copies share the number.
    uint64_t number() const noexcept { return number_; }
    // Marks this error as a repeated report of the failure `number`.
    Error &&telling(uint64_t number) &&
    {
        number_ = number;
        return std::move(*this);
    }
    // Marks the first `call_size` bytes of the message as the call's name, before ": ".
    Error &&naming(size_t call_size) &&
    {
        call_size_ = call_size;
        return std::move(*this);
    }
    // Returns the device of the failure, "cuda:1"; "" if no device is involved.
    const char *device() const noexcept { return device_.c_str(); }

private:
    yoke_status status_;
    int64_t native_code_;
    std::string message_, device_;
    size_t call_size_ = 0;
    uint64_t number_ = new_failure_number();
};

// Message of a call without enough host memory.
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

// Formats into a std::string as printf does, for parts of messages.
__attribute__((format(printf, 1, 2), cold)) std::string format(const char *format, ...);

// Returns the name of a status, "YOKE_E_VALUE"; "YOKE_E_?" for an unknown number.
const char *status_name(yoke_status status) noexcept;

// Stores the calling thread's last error, returned by last_error(). Storing never fails; long messages are cut.
// Storing allocates only if the thread has no state yet; if this allocation fails, the last error is out of memory.
void store_last_error(yoke_status status, const char *call, const char *message,
                      int64_t native_code, const char *device = "") noexcept;
const yoke_error *last_error() noexcept;

// Raises the error stored by a backend entry through host->set_error before it failed. If no message was stored for
// `status`, the message names the status.
[[noreturn]] void rethrow_backend_error(yoke_status status, const char *what,
                                        const char *device = "");

// Returns the message that rethrow_backend_error() would raise, for callers that do not raise, and clears the stored
// message.
std::string take_backend_error(yoke_status status, const char *what);

// Implements host->set_error: keeps the message until rethrow_backend_error takes it. Returns `status`.
yoke_status set_backend_error(yoke_status status, int64_t native_code,
                              const char *message) noexcept;

inline void check_backend(yoke_status status, const char *what, const char *device = "")
{
    if (status != YOKE_OK) [[unlikely]]
        rethrow_backend_error(status, what, device);
}

}  // namespace yoke
