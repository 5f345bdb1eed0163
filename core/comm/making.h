// making.h: the making of a group's engine by all ranks together.
#pragma once

#include "core/comm/engine.h"
#include "core/comm/failure.h"
#include "core/comm/group_keys.h"
#include "core/comm/late/device_choice.h"
#include "core/rendezvous/shrink_rendezvous.h"

#include <memory>
#include <string>

namespace yoke {

struct GroupOptions {
    std::string
        backend;  // the script's name; "": the host engine, and a device's engine if all ranks have it
    Device *device = nullptr;  // device of the collectives, if the script names it at init
    // Calls of scripts must be in a coalesce, since a thread may call for several ranks.
    bool is_one_of_several = false;
    double timeout_s = 600;       // time of a call, including its time in the queue
    double init_timeout_s = 300;  // until all ranks are there
};

// Parts of a group that the ranks make together.
struct Made {
    std::shared_ptr<Engine> engine;  // host engine
    DeviceChoice devices;
    ShrinkPorts ports;  // ports for a shrink, if ranks are processes
};

// Makes the host engine of a group, connected to the engines of the other ranks, and gives it to `failure`. Also
// chooses the engine for devices. If a rank cannot make its part, the rank closes its connections and publishes the
// cause, which all ranks raise.
Made make_engine(const Members &members, const GroupOptions &options, GroupKeys &keys,
                 Failure &failure, Deadline deadline, const char *call);

// Returns half of `seconds`: the time for an answer of an engine's library, while the other ranks wait for this rank
// for `seconds`. The other ranks wait longer than the library, so they can receive the reason.
inline double library_time_s(double seconds)
{
    return seconds / 2;
}

// Makes an engine, connected to the other ranks. On failure raises EngineFailure, or the interrupt if the host
// program has interrupted the wait.
std::shared_ptr<Engine> connect(const yoke_backend_comm &table, const EngineInit &init);

}  // namespace yoke
