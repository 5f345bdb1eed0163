// device_choice.h: choice of the engine for tensors of devices in a group: the engine of their kind, or the host
// engine.
//
// The ranks exchange their offers when they make the group. All ranks choose alike.
#pragma once

#include "core/backend/comm.h"
#include "core/rendezvous/members.h"

#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// Returns the name of the host engine for a script's backend: "cpu" for "" and for engines of devices, such as
// "nccl"; else the backend's own name.
std::string host_engine_of(const std::string &backend);

// Facts about a rank, for the other ranks.
struct DeviceOffer {
    std::string backend;  // the script's name of the backend; "": the library chooses
    std::string device;   // kind of the device that the script gives to init; "": none
    std::string engine;   // "nccl"; "" if no kind of device here has an engine
    int32_t version = 0;  // version of the engine's library; 0: the engine cannot serve
    std::string why_not;  // reason, if `version` is 0

    // Returns this rank's offer: the engine and its version, or the reason why the engine cannot serve. `timeout_s`
    // limits the wait for the engine's library.
    static DeviceOffer of_this_rank(const std::string &backend, const std::string &device,
                                    double timeout_s);
    std::string encode() const;  // a line
    static DeviceOffer decode(std::string_view line);
};

struct DeviceChoice {
    const yoke_backend_comm *table = nullptr;  // null: the host engine serves
    std::string kind;                          // kind of devices, served by the engine
    std::string why_staged;  // reason for the host engine; "" if the script asked for it
};

// Returns the engine for tensors of devices, alike on all ranks, or the reason for the host engine. `offers` are in
// the order of ranks. Raises YOKE_E_UNAVAILABLE if a rank asks for an engine that cannot serve all ranks. Raises
// YOKE_E_VALUE if the ranks give init devices of unlike kinds, or if only some ranks give a device.
DeviceChoice choose(const std::vector<DeviceOffer> &offers, const Members &members,
                    const char *call);

}  // namespace yoke
