// making.h: how the ranks of a group make its engine together.
#pragma once

#include "core/comm/engine.h"
#include "core/comm/failure.h"
#include "core/comm/group_keys.h"
#include "core/rendezvous/shrink_rendezvous.h"

#include <memory>
#include <string>

namespace yoke {

struct GroupOptions {
    std::string engine = "cpu";
    double timeout_s = 600;       // that a call has, with its time in the queue
    double init_timeout_s = 300;  // until all ranks are there
};

// Makes an engine that is connected to the engines of the other ranks, gives it to `failure`, and returns it. If ranks
// are processes, *ports becomes the ports by which they find each other for a shrink. A rank that cannot make its part
// closes its connections and publishes why: all ranks raise that cause.
std::shared_ptr<Engine> make_engine(const Members &members, const GroupOptions &options,
                                    GroupKeys &keys, Failure &failure, ShrinkPorts *ports,
                                    Deadline deadline, const char *call);

}  // namespace yoke
