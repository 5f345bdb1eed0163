// host_store.h: yoke_store_functions as the core takes them.
#pragma once

#include "capi/src/structs.h"
#include "core/rendezvous/host_store.h"
#include "yoke/comm.h"

namespace yoke::capi {

class StoreOfFunctions final : public HostStore {
public:
    // Copies the functions. Raises YOKE_E_VALUE if set or get is missing.
    StoreOfFunctions(const yoke_store_functions *functions, const char *call);
    void set(const std::string &key, const std::string &value) override;
    std::string get(const std::string &key, Deadline deadline) override;

private:
    void check(yoke_status status, const char *function, const std::string &key) const;

    const yoke_store_functions functions_;
};

}  // namespace yoke::capi
