// departures.h: which ranks of a group have gone, as the connections to where the ranks met tell.
#pragma once

#include "core/rendezvous/members.h"

#include <chrono>
#include <condition_variable>
#include <initializer_list>
#include <map>
#include <mutex>
#include <optional>

namespace yoke {

// Ranks that were heard to go. The watch thread notes them; any thread asks. Its lock is the last one that is taken.
class Departures {
public:
    explicit Departures(const Members &members) : server_(members.server()) {}

    // Returns the rank that keeps the table, or -1 where none of this group does.
    int32_t server() const noexcept { return server_; }
    // `with_farewell`: else the rank died. Rank -1 is the keeper of the table where it is none of this group's.
    void note_gone(int32_t rank, bool with_farewell) noexcept;
    // Returns whether the rank said farewell; nothing where it is not known to have gone.
    std::optional<bool> has_gone(int32_t rank) const noexcept;
    // Returns how many ranks of this group have died.
    size_t count_dead() const noexcept;
    // Waits until one of these has gone, for so long at most.
    void await_any(std::initializer_list<int32_t> ranks, std::chrono::milliseconds most) const;

private:
    const int32_t server_;
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    std::map<int32_t, bool> gone_;  // by rank: with a farewell
};

}  // namespace yoke
