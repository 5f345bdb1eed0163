// device_choice.h: which engine serves tensors of devices in a group: that of their kind, or the host's.
//
// The ranks tell each other their offers when they make the group. All choose alike.
#pragma once

#include "core/backend/comm.h"
#include "core/rendezvous/members.h"

#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// Name of the host's engine for a backend that a script has named: "", "nccl" and "gloo" mean "cpu".
std::string host_engine_of(const std::string &backend);

// Facts that a rank tells of itself.
struct DeviceOffer {
    std::string
        backend;  // as its script has named the backend; "": it leaves the choice to the library
    bool has_device = false;  // its script has named the device of its collectives
    std::string engine;       // "nccl"; "" where no kind of devices here has one
    int32_t version = 0;      // of the engine's library; 0: the engine cannot serve
    std::string why_not;      // then

    // `timeout_s`: of the engine's library.
    static DeviceOffer of_this_rank(const std::string &backend, bool has_device, double timeout_s);
    std::string encode() const;  // a line
    static DeviceOffer decode(std::string_view line);
};

struct DeviceChoice {
    const yoke_backend_comm *table = nullptr;  // null: the host's engine serves
    std::string kind;                          // of devices, that the engine serves
    std::string why_staged;  // then why, in a sentence; "" where that was asked for
};

// Returns the choice of all ranks, whose offers are in their order. Raises YOKE_E_UNAVAILABLE if a rank asks for an
// engine that cannot serve all, and YOKE_E_VALUE if some ranks name a device and others none.
DeviceChoice choose(const std::vector<DeviceOffer> &offers, const Members &members,
                    const char *call);

}  // namespace yoke
