// departures.h: which ranks of a group have gone, as their connections to the table tell.
#pragma once

#include "core/rendezvous/members.h"

#include <chrono>
#include <condition_variable>
#include <initializer_list>
#include <map>
#include <mutex>
#include <optional>

namespace yoke {

// Ranks that have gone. The watch thread notes them; any thread asks. Its lock is the last that a thread takes.
class Departures {
public:
    explicit Departures(const Members &members) : server_(members.server()) {}

    // Returns the rank that keeps the table, or -1 where none of this group does.
    int32_t server() const noexcept { return server_; }
    // Notes that the rank said farewell, or else died. Rank -1 is the keeper of the table if that is no rank of this
    // group.
    void note_gone(int32_t rank, bool with_farewell) noexcept;
    // Returns whether the rank said farewell; nothing where it is not known to have gone.
    std::optional<bool> has_gone(int32_t rank) const noexcept;
    // Returns how many ranks of this group have died.
    size_t count_dead() const noexcept;
    // Waits until one of these ranks has gone, for the time `most`.
    void await_any(std::initializer_list<int32_t> ranks, std::chrono::milliseconds most) const;

private:
    const int32_t server_;
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    std::map<int32_t, bool> gone_;  // by rank: with a farewell
};

}  // namespace yoke
