// group_keys.h: what the ranks of a group tell each other in the store: why the group failed, whose call was refused,
// whom a rank misses at a deadline, who has left, and how far the making of the group is.
//
// A rank waits a short time at most here, since the rank that keeps the table may have stopped. Only `agree` and
// `gather` wait as long as their callers say.
#pragma once

#include "core/comm/cause_of.h"
#include "core/rendezvous/members.h"

#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace yoke {

// In a group's store, by rank: of each kind the last call that was refused there; in place of a message, a monitored
// barrier or a shrink as long as no other one was made.
enum class Refused { kCollective, kMessage, kBarrier, kShrink };
inline constexpr const char *kRefusedKeys[] = {"refused", "refused_message", "refused_barrier",
                                               "refused_shrink"};

// Keys of one group under the prefix of its store. Any thread may call it: it has no lock. `listen`, `gather` and
// `note_made` belong to the thread that makes the group.
class GroupKeys {
public:
    explicit GroupKeys(const Members &members) : members_(members) {}

    // Time for one question to the table, or for several that belong together.
    static constexpr std::chrono::milliseconds kSoon{100};
    static Deadline soon() { return Deadline::after(std::chrono::duration<double>(kSoon).count()); }
    // Takes a step of questions to the table. If the step raises, logs `what` and the reason, and returns false. A null
    // `what` logs nothing.
    template <class Step>
    static bool attempt(const char *what, Step &&step) noexcept
    try {
        step();
        return true;
    } catch (const std::exception &error) {
        log_failed_attempt(what, error);
        return false;
    }

    // Publishes why this rank fails. Returns the cause that stands: the first one published, or `mine` if the table
    // does not answer in time.
    Cause agree(Cause mine, double timeout_s) const noexcept;
    // Does the same over another store, for a group that is not made yet.
    static Cause agree_in(Store &store, const Cause &mine) noexcept;
    // Publishes a cause and does not wait for the one that stands, since the watch thread must not wait. Returns false
    // if that cannot be done.
    bool offer(const Cause &cause) const noexcept;
    // Has `hear` called with the cause that any rank publishes; as Store::when_set has it.
    void listen(std::function<void(const Cause &)> hear);
    void stop_listening() noexcept;
    // Returns whether the table is out of reach for ever. A table that does not answer in time may be only slow.
    bool is_out_of_reach() const;

    // Notes what this rank was to call next, and why it was refused. `number`: of the call; 0 for what has none.
    void note_refused(Refused what, uint64_t number, const char *why) noexcept;
    void forget_refused(Refused what) noexcept;
    // Returns why that rank's call of this number was refused; "" where nothing is known. Raises what the store raises.
    std::string refusal_of(int32_t rank, Refused what, uint64_t number, Deadline deadline) const;
    // Does the same for several ranks. If the table does not answer, the rest is "".
    std::vector<std::string> refusals_of(const std::vector<int32_t> &ranks, Refused what,
                                         uint64_t number) const;

    // Tells whom this rank misses. Returns by rank what the ranks tell that miss somebody. Raises what the store
    // raises.
    std::map<int32_t, Missing> exchange_missing(const Missing &mine) const;

    // Tells that this rank lets go of the group, and how its process ends. The last rank removes what is left here.
    void say_left(const std::string &how) noexcept;
    // Returns how the process of a rank that has left ends; nothing where it has not told.
    std::optional<std::string> how_it_left(int32_t rank) const;
    // Returns the first of these ranks that has left, or -1.
    int32_t find_left(std::span<const int32_t> ranks) const;

    // Returns a text of each rank, in their order; ranks make the same calls. Raises YOKE_E_TIMEOUT with those that do
    // not come.
    std::vector<std::string> gather(const std::string &mine, Deadline deadline, const char *call);
    // Notes that this rank's part of the group is made. The last rank removes the keys of the making; keys that it
    // cannot reach at once stay until the job ends.
    void note_made() noexcept;
    // Returns whether some rank still makes its part, or could not; false where nobody can tell.
    bool is_half_made() const noexcept;

    // Returns who keeps the table, for people.
    std::string describe_server() const;
    // Raises YOKE_E_TIMEOUT: `missing` is a list of ranks for people.
    [[noreturn]] static void raise_missing(const char *call, const std::string &missing,
                                           Deadline deadline);

private:
    static void log_failed_attempt(const char *what, const std::exception &error) noexcept;

    const Members &members_;
    uint64_t heard_by_ = 0;  // the number by which the store tells of a cause
    int gathered_ = 0;       // how often the ranks gathered while they made the group
    std::array<std::atomic<bool>, std::size(kRefusedKeys)> has_refused_{};
};

}  // namespace yoke
