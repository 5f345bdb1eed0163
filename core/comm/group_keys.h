// group_keys.h: messages of a group's ranks in the store: the cause of a failure, refused calls, missed ranks at a
// deadline, departed ranks, and the progress of the group's making.
//
// A rank waits here only a short time, since the rank that keeps the store may have stopped. Only `agree` and
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

// Kinds of refused calls. The store of a group has, by rank, the last refused call of each kind. A message, a
// monitored barrier or a shrink stays there until the rank makes another call of this kind.
enum class Refused { kCollective, kMessage, kBarrier, kShrink };
inline constexpr const char *kRefusedKeys[] = {"refused", "refused_message", "refused_barrier",
                                               "refused_shrink"};

// Keys of a group, under the prefix of its store. Any thread may call the functions: there is no lock. `listen`,
// `gather` and `note_made` belong to the thread that makes the group.
class GroupKeys {
public:
    explicit GroupKeys(const Members &members) : members_(members) {}

    // Time for a question to the store, or for several related questions.
    static constexpr std::chrono::milliseconds kSoon{100};
    static Deadline soon() { return Deadline::after(std::chrono::duration<double>(kSoon).count()); }
    // Runs a step of questions to the store. Returns true if the step does not raise. Else logs `what` and the
    // reason, and returns false. A null `what` logs no line.
    template <class Step>
    static bool attempt(const char *what, Step &&step) noexcept
    try {
        step();
        return true;
    } catch (const std::exception &error) {
        log_failed_attempt(what, error);
        return false;
    }

    // Publishes this rank's cause. Returns the standing cause: the first published cause, or `mine` if the store does
    // not answer in time.
    Cause agree(Cause mine, double timeout_s) const noexcept;
    // Publishes a cause in the store of a group not yet made. Returns the standing cause: the first published cause,
    // or `mine` if the store does not answer within a second.
    static Cause agree_in(Store &store, const Cause &mine) noexcept;
    // Publishes a cause without a wait for the standing cause, since the watch thread must not wait. Returns false on
    // failure, or if no `listen` waits for a cause.
    bool offer(const Cause &cause) const noexcept;
    // Calls `hear` once with the cause published first by any rank, at once or when the cause arrives.
    // Store::when_set says in which thread.
    void listen(std::function<void(const Cause &)> hear);
    void stop_listening() noexcept;
    // Asks the store, and returns true if the connection has ended, so the store is out of reach for ever. Returns
    // false for a store without an answer in time, which may be only slow.
    bool is_out_of_reach() const;

    // Publishes that this rank's next call was refused, and why. `number` is the call's number, or 0 if the call has
    // no number.
    void note_refused(Refused what, uint64_t number, const char *why) noexcept;
    void forget_refused(Refused what) noexcept;
    // Returns why the rank's call with this number was refused; "" if unknown. Raises the store's errors.
    std::string refusal_of(int32_t rank, Refused what, uint64_t number, Deadline deadline) const;
    // Returns why the calls with this number of several ranks were refused, in the order of `ranks`; "" if unknown.
    // If the store does not answer, the remaining texts are "".
    std::vector<std::string> refusals_of(const std::vector<int32_t> &ranks, Refused what,
                                         uint64_t number) const;

    // Publishes this rank's message of a missed rank, and waits a short time for the other ranks' messages. Returns
    // the published messages, by rank. Raises the store's errors.
    std::map<int32_t, Missing> exchange_missing(const Missing &mine) const;

    // Publishes that this rank has left the group, and how its process ended. The last rank removes the remaining
    // keys.
    void say_left(const std::string &how) noexcept;
    // Returns how a departed rank's process ended; null if the rank published no departure. Raises the store's
    // errors.
    std::optional<std::string> how_it_left(int32_t rank) const;
    // Returns the first of these ranks that has published its departure, or -1. Raises the store's errors.
    int32_t find_left(std::span<const int32_t> ranks) const;

    // Publishes `mine` and waits for the other ranks. Returns the texts of all ranks, in the order of ranks. All
    // ranks make the same calls. Raises YOKE_E_TIMEOUT with the missing ranks.
    std::vector<std::string> gather(const std::string &mine, Deadline deadline, const char *call);
    // Notes that this rank's part of the group is made. The last rank removes the keys of the making. Keys out of
    // reach stay until the job ends.
    void note_made() noexcept;
    // Returns whether some ranks have made their part of the group and others have not; false if unknown.
    bool is_half_made() const noexcept;

    // Returns a text for people about the rank that keeps the store, or the store's address if no rank of this group
    // does.
    std::string describe_server() const;
    // Raises YOKE_E_TIMEOUT with a list of missing ranks for people, and the time of the deadline.
    [[noreturn]] static void raise_missing(const char *call, const std::string &missing,
                                           Deadline deadline);

private:
    static void log_failed_attempt(const char *what, const std::exception &error) noexcept;

    const Members &members_;
    uint64_t heard_by_ = 0;  // number of the registration with the store
    int gathered_ = 0;       // number of gathers during the making
    std::array<std::atomic<bool>, std::size(kRefusedKeys)> has_refused_{};
};

}  // namespace yoke
