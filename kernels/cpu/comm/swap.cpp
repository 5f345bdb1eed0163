#include "kernels/cpu/comm/swap.h"

#include <errno.h>
#include <poll.h>

namespace yoke::cpu::comm {

yoke_status Swap::blame(yoke_status status, int32_t kind, int peer)
{
    comm_.has_failed = true;
    if (fault_) {
        fault_->kind = kind;
        fault_->rank = peer;
    }
    return status;
}

static bool is_end(int code)
{
    return code == EPIPE || code == ECONNRESET || code == ENOTCONN;
}

static yoke_status fail_ended(int peer)
{
    return fail(YOKE_E_COMM, "cpu: the connection to rank %d has ended", peer);
}

yoke_status Swap::send(int peer, const SwapNote &note, const Pair &ours, int count)
{
    Side &side = sides_[static_cast<size_t>(peer)];
    const int both[2] = {ours.first, ours.second};
    side.has_sent = send_descriptors(side.socket, &note, sizeof note, both, count);
    // The limit of open descriptors of a single process also bounds the descriptors in flight of all the user's
    // processes. When peers take their descriptors, sending works again.
    side.must_pause = !side.has_sent && errno == ETOOMANYREFS;
    if (side.has_sent || side.must_pause || errno == EAGAIN || errno == EINTR) return YOKE_OK;
    if (is_end(errno)) return blame(fail_ended(peer), YOKE_COMM_FAULT_DIED, peer);
    return blame(fail_system(YOKE_E_IO,
                             "cpu: cannot send rank %d the descriptor of the shared memory", peer),
                 YOKE_COMM_FAULT_NONE, -1);
}

yoke_status Swap::receive(int peer, int count)
{
    Side &side = sides_[static_cast<size_t>(peer)];
    const Got got =
        receive_descriptors(side.socket, &side.note, sizeof side.note, side.theirs, count);
    side.has_come = got == Got::kAll;
    if (got == Got::kShortage)
        return blame(fail_shortage("receive the shared memory of another rank", comm_.rank),
                     YOKE_COMM_FAULT_NONE, -1);
    return got == Got::kEnd ? blame(fail_ended(peer), YOKE_COMM_FAULT_DIED, peer) : YOKE_OK;
}

yoke_status Swap::step(int peer, const SwapNote &note, const Pair &ours, bool *open)
{
    Side &side = sides_[static_cast<size_t>(peer)];
    if (side.socket < 0 || (side.has_sent && side.has_come)) return YOKE_OK;
    const int count = ours.second < 0 ? 1 : 2;
    if (!side.has_sent)
        if (yoke_status status = send(peer, note, ours, count)) return status;
    if (!side.has_come)
        if (yoke_status status = receive(peer, count)) return status;
    if (side.has_come && (side.note.number != note.number || side.note.bytes != note.bytes))
        return blame(
            fail(
                YOKE_E_COMM,
                "cpu: this rank shares %llu bytes as block %llu, but rank %d shares %llu bytes as block %llu; allocate the same sizes in the same order on all ranks",
                (unsigned long long)note.bytes, (unsigned long long)note.number, peer,
                (unsigned long long)side.note.bytes, (unsigned long long)side.note.number),
            YOKE_COMM_FAULT_MISMATCH, peer);
    *open |= !side.has_sent || !side.has_come;
    return YOKE_OK;
}

// Returns a failure if the wait must end: after an abort, a failure of the group, or the timeout. Then `late` is the
// rank to blame.
yoke_status Swap::must_end(int late)
{
    if (comm_.aborted.load())
        return blame(fail(YOKE_E_CANCELLED, "cpu: sharing memory was aborted"),
                     YOKE_COMM_FAULT_ABORTED, -1);
    if (init_ && init_->is_over && init_->is_over(init_->user))
        return blame(fail(YOKE_E_CANCELLED, "cpu: the group failed while its ranks shared memory"),
                     YOKE_COMM_FAULT_NONE, -1);
    if (deadline_.passed())
        return blame(fail(YOKE_E_TIMEOUT, "cpu: rank %d did not share its memory within %g s", late,
                          timeout_s_),
                     YOKE_COMM_FAULT_LATE, late);
    return YOKE_OK;
}

yoke_status Swap::wait()
{
    constexpr int64_t kPause = 5'000'000, kLook = 50'000'000;  // then is_over is asked again
    std::vector<pollfd> polled;
    int late = -1;
    int64_t most = kLook;
    for (size_t i = 0; i < sides_.size(); ++i) {
        const Side &side = sides_[i];
        if (side.socket < 0 || (side.has_sent && side.has_come)) continue;
        if (late < 0) late = static_cast<int>(i);
        if (side.must_pause) most = kPause;
        const bool awaits_room = !side.has_sent && !side.must_pause;
        polled.push_back(
            {side.socket,
             static_cast<short>((side.has_come ? 0 : POLLIN) | (awaits_room ? POLLOUT : 0)), 0});
    }
    if (yoke_status status = must_end(late)) return status;
    polled.push_back({comm_.event.get(), POLLIN, 0});
    most = deadline_.left(most);
    const timespec time = {static_cast<time_t>(most / 1'000'000'000),
                           static_cast<long>(most % 1'000'000'000)};
    if (ppoll(polled.data(), polled.size(), &time, nullptr) > 0 && polled.back().revents)
        drain_event(comm_.event.get());
    return YOKE_OK;
}

yoke_status Swap::run(const SwapNote &note, const Pair &ours)
{
    for (;;) {
        bool open = false;
        for (int peer = 0; peer < comm_.size; ++peer)
            if (yoke_status status = step(peer, note, ours, &open)) return status;
        if (!open) return YOKE_OK;
        if (yoke_status status = wait()) return status;
    }
}

}  // namespace yoke::cpu::comm
