// call_watch.h: the thread that watches calls in flight on devices, one for the process, made at first need.
//
// Contract
//  * The thread asks fences and communicators, and keeps deadlines. It takes no lock that anybody holds during a call
//    of a device's driver or of an engine, so that it goes on while those hang.
//  * It lets go of nothing: the end of an object might wait for a device. What it held last is let go of by others.
#pragma once

#include "core/comm/late/flights.h"

#include <memory>

namespace yoke {

class CallWatch {
public:
    // Makes the thread, without which no call can be late. Raises YOKE_E_OOM if the system gives none. At the exit of
    // the process groups get some seconds for their calls, and the thread ends before drivers do.
    static void ensure_thread(const char *call);
    // Has the thread look at the flights until none is left.
    static void watch(std::shared_ptr<Flights> flights);
    // Returns which call is at the head of a lane, of all groups; nothing where none is in flight.
    static std::optional<Flights::Head> head_of(const CommLane &lane);
    // Ends the thread at the exit of the process. It waits for 0.1 s: an entry of a driver may hang.
    static void stop() noexcept;
};

}  // namespace yoke
