// departures.h: departed ranks of a group, known by their connections to the store.
#pragma once

#include "core/rendezvous/members.h"

#include <chrono>
#include <condition_variable>
#include <initializer_list>
#include <map>
#include <mutex>
#include <optional>

namespace yoke {

// Departed ranks. The watch thread notes them; any thread asks. Threads take this lock last.
class Departures {
public:
    explicit Departures(const Members &members) : server_(members.server()) {}

    // Returns the rank that keeps the store, or -1 if no rank of this group does.
    int32_t server() const noexcept { return server_; }
    // Notes that a rank has gone: with a goodbye message, or else by its death. Rank -1 stands for the store of a
    // rank outside this group.
    void note_gone(int32_t rank, bool with_farewell) noexcept;
    // Returns true if the rank left with a goodbye message, false if the rank died, and null if the rank is not known
    // to have gone.
    std::optional<bool> has_gone(int32_t rank) const noexcept;
    // Returns how many ranks of this group have died.
    size_t count_dead() const noexcept;
    // Waits until any of these ranks has gone, at most for the time `most`.
    void await_any(std::initializer_list<int32_t> ranks, std::chrono::milliseconds most) const;

private:
    const int32_t server_;
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    std::map<int32_t, bool> gone_;  // by rank: left with a goodbye message
};

}  // namespace yoke
