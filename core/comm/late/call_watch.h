// call_watch.h: the thread that watches calls in flight on devices. A process has a single such thread, made at first
// need.
//
// Contract
//  * The thread asks fences and communicators, and keeps deadlines. It takes no lock held by other threads during a
//    call of a device's driver or of an engine. So the thread goes on while such calls hang.
//  * The thread releases no object, because the end of an object might wait for a device. Other threads release the
//    last references.
#pragma once

#include "core/comm/late/flights.h"

#include <memory>

namespace yoke {

class CallWatch {
public:
    // Makes the thread, which every deferred call needs. Raises YOKE_E_OOM if the system gives no thread. At the exit
    // of the process, groups get some seconds for their calls, and the thread ends before drivers do.
    static void ensure_thread(const char *call);
    // Gives a group's flights to the thread, which looks at them until no flight is left.
    static void watch(std::shared_ptr<Flights> flights);
    // Returns the first call in flight on a lane, over all groups; null if no call is in flight there.
    static std::optional<Flights::Head> head_of(const CommLane &lane);
    // Ends the thread at the exit of the process. Waits at most 0.1 s, because an entry of a driver may hang.
    static void stop() noexcept;
};

}  // namespace yoke
