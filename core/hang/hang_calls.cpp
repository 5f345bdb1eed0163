#include "core/hang/hang_calls.h"

#include <algorithm>
#include <set>

namespace yoke {

// ---- Calls of a rank --------------------------------------------------------------------------------------------

namespace {

CallKey key_of(const DumpedCall &each, const Dump &dump)
{
    const CallRecord &call = each.call;
    CallKey key;
    key.sequence = call.signature.sequence;
    if (call.op == YOKE_COMM_SEND) key.from = dump.rank, key.to = call.peer;
    if (call.op == YOKE_COMM_RECV) key.from = call.peer, key.to = dump.rank;
    return key;
}

// Returns the standing of a call. In a group that has not failed, a failed call has failed for its caller alone, and
// counts as done. In a failed group, a failed call that began before the failure counts as running. Other failed
// calls count as queued.
Standing standing_of(const CallRecord &call, const Dump &dump)
{
    if (call.state == CallRecord::kQueued) return Standing::kQueued;
    if (call.state == CallRecord::kRunning || call.state == CallRecord::kIssued)
        return Standing::kIn;
    if (call.state == CallRecord::kDone || !dump.cause) return Standing::kDone;
    return call.began_s > 0 && call.began_s <= dump.failed_s ? Standing::kIn : Standing::kQueued;
}

}  // namespace

RankCalls::RankCalls(const Dump &dump) : dump_(&dump)
{
    std::optional<CallKey> first_queued;
    for (const DumpedCall &each : dump.records) {
        const CallKey key = key_of(each, dump);
        const Standing standing = standing_of(each.call, dump);
        calls_[key] = {&each, standing};
        if (standing == Standing::kDone) last_ = &each;
        if (standing == Standing::kIn) current_.push_back(key);
        if (standing == Standing::kQueued && !first_queued) first_queued = key;
    }
    if (!current_.empty() || !first_queued) return;
    current_.push_back(*first_queued);  // next in the queue
    calls_[*first_queued].standing = Standing::kIn;
}

Standing RankCalls::standing(const CallKey &key) const
{
    if (!dump_) return Standing::kNoDump;
    if (const auto found = calls_.find(key); found != calls_.end()) return found->second.standing;
    const bool is_sender = key.from == dump_->rank;
    const uint64_t made = !key.is_between() ? dump_->calls
                          : is_sender       ? dump_->sent[static_cast<size_t>(key.to)]
                                            : dump_->received[static_cast<size_t>(key.from)];
    return made < key.sequence ? Standing::kNeverCame : Standing::kDone;
}

const DumpedCall *RankCalls::find(const CallKey &key) const
{
    const auto found = calls_.find(key);
    return found == calls_.end() ? nullptr : found->second.call;
}

double RankCalls::since(const DumpedCall &each) const
{
    const CallRecord &call = each.call;
    const double until = dump_->cause ? dump_->failed_s : dump_->now_s;
    return std::max(0.0, until - (call.began_s > 0 ? call.began_s : call.queued_s));
}

Whereabouts RankCalls::place() const
{
    if (!dump_) return {};
    if (!current_.empty()) {
        const DumpedCall *const call = find(current_[0]);
        return {dump_, call, true, since(*call)};
    }
    if (dump_->store_call)
        return {dump_, nullptr, false, std::max(0.0, dump_->now_s - dump_->store_call->since_s)};
    const double until = dump_->cause ? dump_->failed_s : dump_->now_s;
    return {dump_, last_, false, last_ ? std::max(0.0, until - last_->call.ended_s) : 0};
}

uint64_t RankCalls::finished() const
{
    for (const auto &[key, known] : calls_)
        if (!key.is_between() && known.standing != Standing::kDone) return key.sequence - 1;
    return dump_->calls;
}

// ---- Calls of a group -------------------------------------------------------------------------------------------

std::vector<int32_t> StuckCall::missing() const
{
    std::vector<int32_t> all;
    for (const Standing each : {Standing::kNoDump, Standing::kNeverCame, Standing::kQueued})
        all.insert(all.end(), of(each).begin(), of(each).end());
    std::ranges::sort(all);
    return all;
}

std::vector<StuckCall> stuck_calls(const std::vector<RankCalls> &ranks)
{
    std::set<CallKey> keys;
    for (const RankCalls &each : ranks) keys.insert(each.current().begin(), each.current().end());
    std::vector<StuckCall> all;
    for (const CallKey &key : keys) {
        StuckCall call{key, {}};
        const auto add = [&](int32_t rank) {
            const Standing standing = ranks[static_cast<size_t>(rank)].standing(key);
            call.by[static_cast<size_t>(standing)].push_back(rank);
        };
        if (key.is_between()) {
            add(key.from);
            if (key.to != key.from) add(key.to);
        } else {
            for (int32_t rank = 0; rank < std::ssize(ranks); ++rank) add(rank);
        }
        all.push_back(std::move(call));
    }
    return all;
}

// ---- Chains of waiting ranks ------------------------------------------------------------------------------------

Waits::Waits(const std::vector<RankCalls> &ranks, const std::vector<StuckCall> &calls)
    : calls_(calls), in_(ranks.size()), missed_(ranks.size())
{
    for (size_t i = 0; i < calls.size(); ++i) {
        missing_.push_back(calls[i].missing());
        if (missing_[i].empty()) continue;
        for (const int32_t rank : calls[i].of(Standing::kIn))
            in_[static_cast<size_t>(rank)].push_back(i);
        for (const int32_t rank : missing_[i]) missed_[static_cast<size_t>(rank)].push_back(i);
    }
}

// Waiting ranks whose chains have no end.
class Waits::Left {
public:
    explicit Left(const Waits &waits) : waits_(waits), is_left_(waits.in_.size(), true)
    {
        for (const auto &calls : waits.in_) of_rank_.push_back(calls.size());
        for (const auto &missing : waits.missing_) of_call_.push_back(missing.size());
        for (size_t rank = 0; rank < is_left_.size(); ++rank)
            if (waits.in_[rank].empty()) leave(static_cast<int32_t>(rank));
    }
    bool has(int32_t rank) const { return is_left_[static_cast<size_t>(rank)]; }
    // Removes a rank, and ranks that then wait for no remaining rank.
    void leave(int32_t rank);
    // Returns a remaining rank for which `rank` waits, or `rank` itself if there is none.
    int32_t next(int32_t rank) const;

private:
    const Waits &waits_;
    std::vector<bool> is_left_;
    std::vector<size_t> of_rank_,
        of_call_;  // calls in which a rank waits, ranks missing in a call
};

void Waits::Left::leave(int32_t rank)
{
    if (!has(rank)) return;
    std::vector<int32_t> leaving{rank};
    is_left_[static_cast<size_t>(rank)] = false;
    while (!leaving.empty()) {
        const auto gone = static_cast<size_t>(leaving.back());
        leaving.pop_back();
        for (const size_t call : waits_.missed_[gone]) {
            if (--of_call_[call] > 0) continue;
            for (const int32_t each : waits_.calls_[call].of(Standing::kIn)) {
                if (--of_rank_[static_cast<size_t>(each)] > 0 || !has(each)) continue;
                is_left_[static_cast<size_t>(each)] = false;
                leaving.push_back(each);
            }
        }
    }
}

int32_t Waits::Left::next(int32_t rank) const
{
    for (const size_t call : waits_.in_[static_cast<size_t>(rank)])
        for (const int32_t each : waits_.missing_[call])
            if (has(each)) return each;
    return rank;
}

std::vector<std::vector<int32_t>> Waits::cycles() const
{
    Left left(*this);
    std::vector<std::vector<int32_t>> all;
    std::vector<size_t> place(in_.size(), SIZE_MAX);  // index in `way`
    for (int32_t first = 0; first < std::ssize(in_); ++first) {
        if (!left.has(first)) continue;
        std::vector<int32_t> way;
        int32_t rank = first;
        for (; place[static_cast<size_t>(rank)] == SIZE_MAX; rank = left.next(rank)) {
            place[static_cast<size_t>(rank)] = way.size();
            way.push_back(rank);
        }
        const auto begin = static_cast<ptrdiff_t>(place[static_cast<size_t>(rank)]);
        for (const int32_t each : way) place[static_cast<size_t>(each)] = SIZE_MAX;
        way.erase(way.begin(), way.begin() + begin);
        for (const int32_t each : way) left.leave(each);
        all.push_back(std::move(way));
    }
    return all;
}

std::vector<int32_t> Waits::ends() const
{
    std::vector<int32_t> all;
    for (size_t rank = 0; rank < in_.size(); ++rank)
        if (in_[rank].empty() && !missed_[rank].empty()) all.push_back(static_cast<int32_t>(rank));
    return all;
}

const StuckCall *Waits::between(int32_t rank, int32_t other) const
{
    for (const size_t call : in_[static_cast<size_t>(rank)])
        if (std::ranges::binary_search(missing_[call], other)) return &calls_[call];
    return nullptr;
}

}  // namespace yoke
