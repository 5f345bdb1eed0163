#include "capi/src/host_store.h"

#include "core/base/interrupt.h"
#include "core/rendezvous/init_call.h"

namespace yoke::capi {

StoreOfFunctions::StoreOfFunctions(const yoke_store_functions *functions, const char *call)
    : functions_(read_struct(functions, call, "options->store"))
{
    if (!functions_.set || !functions_.get)
        fail(YOKE_E_VALUE, "%s: argument 'options->store' has no %s; it must have set and get",
             short_name(call), functions_.set ? "get" : "set");
}

// Raises if a function of the store has failed: YOKE_E_TIMEOUT for a timeout, YOKE_E_COMM for any other status, since
// the store is broken then.
void StoreOfFunctions::check(yoke_status status, const char *function, const std::string &key) const
{
    if (status == YOKE_OK) return;
    const char *problem = functions_.problem ? functions_.problem(functions_.user) : nullptr;
    if (!problem || !*problem) problem = status_name(status);
    fail_in(kInitCall, status == YOKE_E_TIMEOUT ? YOKE_E_TIMEOUT : YOKE_E_COMM,
            "the store's %s('%s') failed: %s", function, key.c_str(), problem);
}

void StoreOfFunctions::set(const std::string &key, const std::string &value)
{
    const Undisturbed host;
    check(functions_.set(functions_.user, key.c_str(), value.data(),
                         static_cast<int64_t>(value.size())),
          "set", key);
}

std::string StoreOfFunctions::get(const std::string &key, Deadline deadline)
{
    std::string value(size_t{16} << 10, '\0');
    const auto capacity = static_cast<int64_t>(value.size());
    int64_t bytes = 0;
    const Undisturbed host;
    check(functions_.get(functions_.user, key.c_str(), deadline.remaining_s(), value.data(),
                         capacity, &bytes),
          "get", key);
    if (bytes < 0 || bytes > capacity)
        fail_in(
            kInitCall, YOKE_E_COMM,
            "the store's get('%s') returned a value of %lld bytes that Yoke did not write; give the job its own store",
            key.c_str(), static_cast<long long>(bytes));
    value.resize(static_cast<size_t>(bytes));
    return value;
}

}  // namespace yoke::capi
