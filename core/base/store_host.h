// store_host.h: a table that the host program keeps, by functions of its own: a database that it has, an object of a
// script.
#pragma once

#include "core/base/store.h"

namespace yoke {

// Each returns a status. They may come from any thread. `seconds` is how long a call may wait: it is asked again until
// the caller's own deadline, so that an abort is seen in between.
struct HostStoreFunctions {
    void *user = nullptr;
    yoke_status (*set)(void *user, const char *key, const void *value, uint64_t bytes) = nullptr;
    // Calls `take` once with the value; YOKE_E_TIMEOUT where the key is not there in time.
    yoke_status (*get)(void *user, const char *key, double seconds,
                       void (*take)(void *taker, const void *value, uint64_t bytes),
                       void *taker) = nullptr;
    yoke_status (*add)(void *user, const char *key, int64_t delta, int64_t *sum) = nullptr;
    // These may be null. Waits until all keys are there; without it each is asked for.
    yoke_status (*wait)(void *user, const char *const *keys, int64_t count,
                        double seconds) = nullptr;
    yoke_status (*remove)(void *user, const char *key) = nullptr;
    void (*drop)(void *user) = nullptr;  // after the last call
};

std::shared_ptr<Store> make_host_store(const HostStoreFunctions &functions);

}  // namespace yoke
