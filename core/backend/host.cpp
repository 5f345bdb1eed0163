// Table of the core's services for every backend. No service may throw.
#include "core/backend/registry.h"
#include "core/base/config.h"
#include "core/base/error.h"
#include "core/base/lent.h"
#include "core/base/log.h"
#include "core/base/thread_state.h"

#include <algorithm>
#include <new>
#include <string>

namespace yoke::detail {

namespace {

yoke_status host_set_error(yoke_status status, int64_t native_code, const char *message)
{
    return set_backend_error(status, native_code, message ? message : "");
}

void host_log(int32_t level, const char *message)
{
    const int32_t known = std::clamp<int32_t>(level, YOKE_LOG_ERROR, YOKE_LOG_DEBUG);
    log(static_cast<LogLevel>(known), "%s", message ? message : "");
}

// Returns a value of the configuration. Opening the backend has refused unreadable values, so null means an absent
// value, or no memory to keep the value.
const char *host_config(const char *key)
{
    try {
        return key ? try_config(key) : nullptr;
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

yoke_status host_scratch_alloc(void *device, uint64_t bytes, void *stream, uint32_t flags,
                               void **out)
{
    return lent.alloc_scratch(device, bytes, stream, flags, out);
}

// Frees scratch and keeps the error recorded by the failing entry. Returning memory to the device may fail too, and
// would overwrite the record.
void host_scratch_free(void *device, void *pointer, void *stream)
{
    ThreadState *const state = try_thread_state();
    if (!state || state->backend_error.error.status == YOKE_OK) [[likely]]
        return lent.free_scratch(device, pointer, stream);
    const ErrorRecord told = state->backend_error;
    lent.free_scratch(device, pointer, stream);
    state->backend_error = told;
}

// Returns the number of threads; 1 for a thread without memory for its state. Unreadable counts were refused when the
// backend opened.
int32_t host_num_threads() noexcept
{
    try {
        return num_threads();
    } catch (...) {
        return 1;
    }
}

constexpr yoke_host kHost = {
    sizeof(yoke_host), YOKE_BACKEND_ABI, host_set_error,     host_log,
    host_config,       host_num_threads, host_scratch_alloc, host_scratch_free,
};

}  // namespace

const yoke_host &host_table() noexcept
{
    return kHost;
}

}  // namespace yoke::detail
