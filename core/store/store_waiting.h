// store_waiting.h: requests of one connection to a store's server that wait for keys.
#pragma once

#include "core/store/store_hash.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace yoke {

// Requests by their number. Any thread may call each function, since whoever sets a key goes on with those that wait.
class WaitingCalls {
public:
    // A request that is answered once all its keys are there.
    struct Call {
        Store::Keys keys;
        bool wants_values = false;
        bool is_waited_for = true;  // else nobody waits, but wants to know
        size_t there = 0;           // how many were found; the next one is waited for
        uint64_t waiter = 0;        // the number of what the table calls when that comes
        size_t bytes = 0;           // of memory, about
        const std::string &awaited() const { return keys[there]; }
    };

    // Raises YOKE_E_VALUE where no more fit, YOKE_E_COMM where the number is taken.
    void add(uint64_t request, Call call);
    // Takes the request out if all its keys are in the table; else *awaited is the first that is not, or "" where there
    // is no such request.
    std::optional<Call> take_if_complete(uint64_t request, const HashStore &table,
                                         std::string *awaited);
    // Notes what the table calls when the key comes, if the request still waits for it.
    void note_waiter(uint64_t request, const std::string &key, uint64_t waiter);
    std::optional<Call> take(uint64_t request);
    std::map<uint64_t, Call> take_all();

private:
    using Place = std::map<uint64_t, Call>::iterator;
    Call take_out(Place place);  // under the lock

    std::mutex mutex_;
    std::map<uint64_t, Call> calls_;
    size_t waited_for_ = 0, bytes_ = 0;  // of them
};

}  // namespace yoke
