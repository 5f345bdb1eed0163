// making.h: how the ranks of a group make its engine together.
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
        backend;  // as the script names it; "": the host's engine, and a device's where all ranks have one
    Device *device = nullptr;  // of the collectives, if the script names it at init
    // Calls of scripts stand in a coalesce, since one thread may call for several ranks.
    bool is_one_of_several = false;
    double timeout_s = 600;       // that a call has, with its time in the queue
    double init_timeout_s = 300;  // until all ranks are there
};

// Parts of a group that the ranks make together.
struct Made {
    std::shared_ptr<Engine> engine;  // the host's
    DeviceChoice devices;
    ShrinkPorts ports;  // by which ranks that are processes find each other for a shrink
};

// Makes an engine that is connected to the engines of the other ranks, and gives it to `failure`. A rank that cannot
// make its part closes its connections and publishes why: all ranks raise that cause.
Made make_engine(const Members &members, const GroupOptions &options, GroupKeys &keys,
                 Failure &failure, Deadline deadline, const char *call);

// Returns how long an engine's library may take to answer a rank, while the others wait for that rank for `seconds`.
// They wait longer than it, so that they hear why.
inline double library_time_s(double seconds)
{
    return seconds / 2;
}

// Makes an engine. If its ranks are waited for in vain since the host interrupts, raises the interrupt.
std::shared_ptr<Engine> connect(const yoke_backend_comm &table, const EngineInit &init);

}  // namespace yoke
