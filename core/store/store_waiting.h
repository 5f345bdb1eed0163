// store_waiting.h: a connection's requests to a store's server, waiting for keys.
#pragma once

#include "core/store/store_hash.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace yoke {

// Requests by number. Any thread may call each function, since a thread that sets a key continues the waiting
// requests.
class WaitingCalls {
public:
    // Request answered once all its keys are there.
    struct Call {
        Store::Keys keys;
        bool wants_values = false;
        bool is_waited_for = true;  // false: no call waits, a callback is wanted
        size_t there = 0;           // keys found so far; the next key is awaited
        uint64_t waiter = 0;        // number of the store's callback for the awaited key
        size_t bytes = 0;           // approximate memory
        const std::string &awaited() const { return keys[there]; }
    };

    // Adds a waiting request. Raises YOKE_E_VALUE if no more requests fit, and YOKE_E_COMM if the number is taken.
    void add(uint64_t request, Call call);
    // Takes the request out and returns it, if all its keys are in the store. Else returns nullopt, with the first
    // missing key in *awaited; *awaited stays as it is if there is no such request.
    std::optional<Call> take_if_complete(uint64_t request, const HashStore &table,
                                         std::string *awaited);
    // Notes the store's callback for the key, if the request still waits for the key.
    void note_waiter(uint64_t request, const std::string &key, uint64_t waiter);
    std::optional<Call> take(uint64_t request);
    std::map<uint64_t, Call> take_all();

private:
    using Place = std::map<uint64_t, Call>::iterator;
    Call take_out(Place place);  // under the lock

    std::mutex mutex_;
    std::map<uint64_t, Call> calls_;
    size_t waited_for_ = 0, bytes_ = 0;  // sums over the calls
};

}  // namespace yoke
