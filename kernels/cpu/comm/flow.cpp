#include "kernels/cpu/comm/flow.h"

#include <algorithm>
#include <cstring>

namespace yoke::cpu::comm {

void Flow::begin(const yoke_collective &call)
{
    constexpr uint64_t kMostOfShort = 2 << 20;
    is_short_ = static_cast<uint64_t>(call.count) * dtype_bytes(call.dtype) <= kMostOfShort;
    timeout_s_ = call.timeout_s;
    deadline_ = Deadline(call.timeout_s);
    fault_ = call.fault;
    headers_.clear();
    add_header(*call.signature);
    next();
}

void Flow::next()
{
    for (Lane &lane : lanes_) {
        lane.out.clear();
        lane.in.clear();
        lane.out_at = lane.in_at = 0;
        lane.out_done = lane.in_done = lane.stored = 0;
    }
    used_.clear();
    chunks_.clear();
    team_.clear();
    combined_ = 0;
    mismatched_ = -1;
}

Header &Flow::add_header(const yoke_comm_signature &signature)
{
    headers_.emplace_back();
    headers_.back().signature = signature;
    return headers_.back();
}

// ---- steps ----------------------------------------------------------------------------------------------------------

static Lane &use(Lane &lane, const Comm &comm, int peer, std::vector<int> &used)
{
    if (!lane.is_open()) {
        lane.link = comm.links[static_cast<size_t>(peer)].get();
        used.push_back(peer);
    }
    return lane;
}

void Flow::send_header(int peer, Header &header)
{
    send(peer, &header, sizeof header);
}

void Flow::expect_header(int peer, Header &header)
{
    use(lane(peer), comm_, peer, used_)
        .in.push_back({reinterpret_cast<char *>(&header), sizeof header, Take::kHeader});
}

void Flow::greet_all()
{
    for (int i = 1; i < comm_.size; ++i) {
        send_header((comm_.rank + i) % comm_.size);
        expect_header((comm_.rank + i) % comm_.size);
    }
}

void Flow::send(int peer, const void *data, uint64_t bytes, const uint64_t *gate, uint64_t at_least)
{
    if (!bytes) return;
    use(lane(peer), comm_, peer, used_)
        .out.push_back({static_cast<const char *>(data), bytes, gate, at_least});
}

void Flow::receive(int peer, void *data, uint64_t bytes)
{
    if (!bytes) return;
    use(lane(peer), comm_, peer, used_)
        .in.push_back({static_cast<char *>(data), bytes, Take::kStore});
}

void Flow::combine(int peer, uint64_t bytes)
{
    use(lane(peer), comm_, peer, used_).in.push_back({nullptr, bytes, Take::kCombine});
}

void Flow::combine_from(std::vector<int> team, const Combination &how)
{
    team_ = std::move(team);
    how_ = how;
    inputs_.resize(team_.size());
    how_.inputs = inputs_.data();
    how_.input_count = static_cast<int32_t>(team_.size());
}

// ---- moving ---------------------------------------------------------------------------------------------------------

// Writes all ready bytes to the link, and returns whether bytes moved. Consecutive steps go in a single write, so a
// small message takes a single system call.
bool Flow::push(Lane &lane)
{
    constexpr int kMostParts = 8;
    iovec parts[kMostParts + 1];
    int count = 0;
    uint64_t done = lane.out_done;
    for (size_t at = lane.out_at; at < lane.out.size() && count < kMostParts; ++at, done = 0) {
        const OutStep &step = lane.out[at];
        if (step.gate && *step.gate < step.at_least) break;
        const uint64_t whole = padded(step.bytes);
        if (done < step.bytes)
            parts[count++] = {const_cast<char *>(step.data) + done, step.bytes - done};
        if (whole > step.bytes) parts[count++] = {nullptr, whole - std::max(done, step.bytes)};
    }
    if (!count) return false;
    size_t sent = lane.link->write(parts, count);
    const bool moved = sent > 0;
    while (sent) {
        const uint64_t rest = padded(lane.out[lane.out_at].bytes) - lane.out_done;
        const uint64_t now = std::min<uint64_t>(rest, sent);
        sent -= now;
        lane.out_done += now;
        if (now < rest) break;
        ++lane.out_at;
        lane.out_done = 0;
    }
    return moved;
}

bool Flow::take_header(int peer, Lane &lane)
{
    const char *there = lane.link->peek(sizeof(Header));
    if (!there) return false;
    memcpy(&lane.header, there, sizeof(Header));
    const Header &expected = *reinterpret_cast<Header *>(lane.in[lane.in_at].data);
    const bool same =
        lane.header.mark == kHeaderMark &&
        !memcmp(&lane.header.signature, &expected.signature, sizeof(yoke_comm_signature));
    if (!same) {
        if (mismatched_ < 0) mismatched_ = peer;
        return false;
    }
    lane.link->consume(sizeof(Header));
    ++lane.in_at;
    return true;
}

bool Flow::pull(int peer, Lane &lane)
{
    bool moved = false;
    while (lane.awaits() && mismatched_ < 0) {
        const InStep &step = lane.in[lane.in_at];
        if (step.take == Take::kCombine) break;
        if (step.take == Take::kHeader) {
            if (!take_header(peer, lane)) break;
            moved = true;
            continue;
        }
        const bool stores = lane.in_done < step.bytes;
        const size_t now =
            stores ? lane.link->read(step.data + lane.in_done, step.bytes - lane.in_done)
                   : lane.link->skip(padded(step.bytes) - lane.in_done);
        if (stores) lane.stored += now;
        lane.in_done += now;
        moved |= now > 0;
        if (lane.in_done == padded(step.bytes)) {
            ++lane.in_at;
            lane.in_done = 0;
        } else if (!now) {
            break;
        }
    }
    return moved;
}

// Combines the next chunk if the chunks of all ranks have arrived; else returns false. The inputs are read in the
// link's own memory.
bool Flow::combine_next()
{
    if (combined_ == chunks_.size()) return false;
    const Chunk &chunk = chunks_[combined_];
    for (size_t i = 0; i < team_.size(); ++i) {
        inputs_[i] = chunk.own;
        if (team_[i] == comm_.rank) continue;
        Lane &from = lane(team_[i]);
        if (!from.awaits() || from.in[from.in_at].take != Take::kCombine) return false;
        inputs_[i] = from.link->peek(padded(from.in[from.in_at].bytes));
        if (!inputs_[i]) return false;
    }
    how_.out = chunk.out;
    how_.count = chunk.count;
    comm_.combine(how_);
    for (int peer : team_) {
        if (peer == comm_.rank) continue;
        Lane &from = lane(peer);
        from.link->consume(padded(from.in[from.in_at].bytes));
        ++from.in_at;
    }
    ++combined_;
    return true;
}

bool Flow::move()
{
    bool moved = false;
    for (int peer : used_)
        if (lane(peer).sends()) moved |= push(lane(peer));
    for (int peer : used_)
        if (lane(peer).awaits()) moved |= pull(peer, lane(peer));
    while (mismatched_ < 0 && combine_next()) {
        moved = true;
        for (int peer : used_) {  // moves steps with open gates while the chunk is in the cache
            if (lane(peer).sends()) push(lane(peer));
            if (lane(peer).awaits()) pull(peer, lane(peer));
        }
    }
    return moved;
}

bool Flow::look()
{
    return move() || mismatched_ >= 0;
}

bool Flow::is_open() const
{
    if (combined_ < chunks_.size()) return true;
    for (int peer : used_)
        if (lanes_[static_cast<size_t>(peer)].is_open()) return true;
    return false;
}

yoke_status Flow::run()
{
    for (unsigned passes = 0; is_open(); ++passes) {
        const bool moved = move();
        if (mismatched_ >= 0) return fail_with(YOKE_COMM_FAULT_MISMATCH, mismatched_);
        if (moved && passes % 16) continue;
        if (yoke_status status = check()) return status;
        if (moved || !is_open()) continue;
        if (yoke_status status = blame_ended()) return status;
        waiter_.wait(*this);
    }
    return YOKE_OK;
}

// ---- early ends of a call, and the ranks to blame -------------------------------------------------------------------

// Returns the lowest rank that has not begun the call. If all ranks have begun a message, or a call of two ranks,
// returns the lowest rank with open steps. In a larger collective, other ranks also wait for each other, so this rank
// cannot see the cause, and returns -1.
int Flow::late_rank()
{
    int not_begun = comm_.size, open = comm_.size;
    for (int peer : used_) {
        const Lane &one = lane(peer);
        if (!one.is_open()) continue;
        open = std::min(open, peer);
        if (one.awaits() && one.in[one.in_at].take == Take::kHeader)
            not_begun = std::min(not_begun, peer);
    }
    if (not_begun < comm_.size) return not_begun;
    return header().signature.op == YOKE_COMM_SEND || comm_.size == 2 ? open : -1;
}

yoke_status Flow::check()
{
    if (comm_.aborted.load()) return fail_with(YOKE_COMM_FAULT_ABORTED, -1);
    if (deadline_.passed() && is_open()) return fail_with(YOKE_COMM_FAULT_LATE, late_rank());
    return YOKE_OK;
}

// Returns a failure if a peer's link has ended, and blames the lowest such rank; else returns YOKE_OK. Called after a
// look that found no more bytes to read.
yoke_status Flow::blame_ended()
{
    int ended = comm_.size;
    for (int peer : used_)
        if (lane(peer).is_open() && lane(peer).link->is_closed()) ended = std::min(ended, peer);
    return ended < comm_.size ? fail_with(YOKE_COMM_FAULT_DIED, ended) : YOKE_OK;
}

yoke_status Flow::fail_with(int32_t kind, int peer)
{
    comm_.has_failed = true;
    if (fault_) {
        fault_->kind = kind;
        fault_->rank = peer;
        fault_->theirs = {};
    }
    const yoke_comm_signature &mine = header().signature;
    const char *name = kernels::call_name(mine.op);
    const auto sequence = static_cast<unsigned long long>(mine.sequence);
    switch (kind) {
        case YOKE_COMM_FAULT_ABORTED:
            return fail(YOKE_E_CANCELLED, "cpu: %s, call %llu, was aborted", name, sequence);
        case YOKE_COMM_FAULT_LATE:
            if (peer < 0)
                return fail(
                    YOKE_E_TIMEOUT,
                    "cpu: %s, call %llu: all ranks arrived, but the call did not finish within %.4g s",
                    name, sequence, timeout_s_);
            return fail(YOKE_E_TIMEOUT, "cpu: %s, call %llu: rank %d did not arrive within %.4g s",
                        name, sequence, peer, timeout_s_);
        case YOKE_COMM_FAULT_DIED:
            return fail(YOKE_E_COMM, "cpu: %s, call %llu: the connection to rank %d has ended",
                        name, sequence, peer);
        default:
            return fail_mismatch(peer);
    }
}

// Reports the header expected next from the peer, and the header received. Returns YOKE_E_COMM.
yoke_status Flow::fail_mismatch(int peer)
{
    const Lane &from = lane(peer);
    const yoke_comm_signature &theirs = from.header.signature;
    const yoke_comm_signature &mine =
        reinterpret_cast<const Header *>(from.in[from.in_at].data)->signature;
    if (from.header.mark != kHeaderMark) {
        if (fault_) fault_->kind = YOKE_COMM_FAULT_NONE;
        return fail(
            YOKE_E_COMM, "cpu: %s, call %llu: rank %d sent bytes that are not the header of a call",
            kernels::call_name(mine.op), static_cast<unsigned long long>(mine.sequence), peer);
    }
    if (fault_) fault_->theirs = theirs;
    return kernels::tell_mismatch({g_host, "cpu", comm_.rank, comm_.size}, mine, peer, theirs);
}

}  // namespace yoke::cpu::comm
