#include "core/base/error.h"

#include "core/base/locale.h"
#include "core/base/text.h"
#include "core/base/thread_state.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <utility>

namespace yoke {

namespace {

std::string vformat(const char *format, va_list args)
{
    const PlainLocale plain;
    va_list again;
    va_copy(again, args);
    const int length = vsnprintf(nullptr, 0, format, args);
    std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
    vsnprintf(text.data(), text.size() + 1, format, again);
    va_end(again);
    return text;
}

constexpr const char *kStatusNames[] = {
    "YOKE_OK",
    "YOKE_E_VALUE",
    "YOKE_E_TYPE",
    "YOKE_E_INDEX",
    "YOKE_E_CLOSED",
    "YOKE_E_STATE",
    "YOKE_E_UNSUPPORTED",
    "YOKE_E_OOM",
    "YOKE_E_UNAVAILABLE",
    "YOKE_E_DEVICE_LOST",
    "YOKE_E_TIMEOUT",
    "YOKE_E_CANCELLED",
    "YOKE_E_COMM",
    "YOKE_E_CHECKPOINT",
    "YOKE_E_IO",
    "YOKE_E_FORKED",
    "YOKE_E_INTERNAL",
};

// Errors shown for a thread without a state of its own: no error, or no memory for a state.
constexpr yoke_error kNoError = {sizeof(yoke_error), YOKE_OK, "", "", "", 0, nullptr};
constexpr yoke_error kNoMemory = {
    sizeof(yoke_error), YOKE_E_OOM, kNoMemoryText, "", "", 0, nullptr};
constinit thread_local bool had_no_memory __attribute__((tls_model("initial-exec"))) = false;

}  // namespace

uint64_t new_failure_number() noexcept
{
    static std::atomic<uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void fail(yoke_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    std::string text = vformat(format, args);
    va_end(args);
    throw Error(status, std::move(text));
}

void fail_in(const char *call, yoke_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const std::string text = vformat(format, args);
    va_end(args);
    throw Error(status, std::string(call) + ": " + text).naming(strlen(call));
}

std::string format(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    std::string text = vformat(format, args);
    va_end(args);
    return text;
}

const char *status_name(yoke_status status) noexcept
{
    constexpr size_t count = sizeof kStatusNames / sizeof kStatusNames[0];
    return status >= 0 && static_cast<size_t>(status) < count ? kStatusNames[status] : "YOKE_E_?";
}

void store_last_error(yoke_status status, const char *call, const char *message,
                      int64_t native_code, const char *device) noexcept
{
    ThreadState *state = try_thread_state();
    had_no_memory = !state;
    if (!state) return;
    // The numbers of a device's memory belong to the error of the request that failed.
    state->oom.is_of_last = status == YOKE_E_OOM && state->oom.is_new;
    state->oom.is_new = false;
    ErrorRecord &record = state->last_error;
    put(record.message, message);
    put(record.call, call);
    put(record.device, device);
    record.error = {sizeof(yoke_error), status,      record.message, record.device,
                    record.call,        native_code, nullptr};
}

const yoke_error *last_error() noexcept
{
    if (had_no_memory) return &kNoMemory;
    const ThreadState *state = known_thread_state();
    return state && state->last_error.error.struct_size ? &state->last_error.error : &kNoError;
}

yoke_status set_backend_error(yoke_status status, int64_t native_code, const char *message) noexcept
{
    ThreadState *state = try_thread_state();
    if (!state) return status;
    ErrorRecord &record = state->backend_error;
    put(record.message, message);
    record.error.status = status;
    record.error.native_code = native_code;
    return status;
}

std::string take_backend_error(yoke_status status, const char *what)
{
    ErrorRecord &record = thread_state().backend_error;
    // If a backend returns a failure without a message, an older message must not be reported.
    const bool told = record.error.status == status && record.message[0] != '\0';
    // The message of a kernel already names the op.
    const size_t length = strlen(what);
    const bool named =
        told && strncmp(record.message, what, length) == 0 && record.message[length] == ':';
    std::string text = named  ? std::string(record.message)
                       : told ? std::string(what) + ": " + record.message
                              : format("%s failed with %s", what, status_name(status));
    record.error.status = YOKE_OK;
    record.message[0] = '\0';
    return text;
}

void rethrow_backend_error(yoke_status status, const char *what, const char *device)
{
    const ErrorRecord &record = thread_state().backend_error;
    const int64_t native = record.error.status == status ? record.error.native_code : 0;
    throw Error(status, take_backend_error(status, what), native, device);
}

}  // namespace yoke
