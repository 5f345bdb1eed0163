// made_dumps.h: dumps of ranks, made up call by call.
#pragma once

#include "core/comm/dump.h"

#include <string>

namespace yoke::test {

inline constexpr double kNow = 1000;

// A rank's dump, call by call.
class Made {
public:
    Made(int32_t rank, int32_t size, uint64_t group = 7)
    {
        dump_.yoke = "0.1.0";
        dump_.time = "2026-11-25T18:00:00Z";
        dump_.group = group;
        dump_.rank = rank;
        dump_.now_s = kNow;
        for (int32_t i = 0; i < size; ++i) {
            RankInfo one;
            one.rank = i;
            one.host = "h" + std::to_string(i);
            one.process = 100 + i;
            dump_.ranks.push_back(one);
        }
        dump_.sent.resize(static_cast<size_t>(size));
        dump_.received.resize(static_cast<size_t>(size));
    }

    Made &call(int32_t op, CallRecord::State state, int32_t line, int64_t count = 4,
               double age_s = 20)
    {
        const uint64_t sequence = ++dump_.calls;
        return add(op, -1, sequence, state, line, count, age_s);
    }
    Made &done(int32_t op, int32_t line) { return call(op, CallRecord::kDone, line); }
    Made &in(int32_t op, int32_t line, int64_t count = 4, double age_s = 20)
    {
        return call(op, CallRecord::kRunning, line, count, age_s);
    }
    Made &send(int32_t to, CallRecord::State state, int32_t line, int64_t count = 4)
    {
        const uint64_t sequence = ++dump_.sent[static_cast<size_t>(to)];
        return add(YOKE_COMM_SEND, to, sequence, state, line, count, 20);
    }
    Made &recv(int32_t from, CallRecord::State state, int32_t line, int64_t count = 4)
    {
        const uint64_t sequence = ++dump_.received[static_cast<size_t>(from)];
        return add(YOKE_COMM_RECV, from, sequence, state, line, count, 20);
    }
    Made &fail(const char *cause, double at_s)
    {
        dump_.cause = Cause{YOKE_E_COMM, cause};
        dump_.failed_s = at_s;
        return *this;
    }
    Made &meet(const char *call, double age_s)
    {
        dump_.store_call = DumpedStoreCall{call, kNow - age_s, "t.py", "step", 8};
        return *this;
    }
    Made &at(double now_s)
    {
        dump_.now_s = now_s;
        dump_.path = "dump of " + std::to_string(now_s);
        return *this;
    }
    // Returns the dump as read from a file.
    operator Dump() const
    {
        Dump read = read_dump(dump_text(dump_));
        read.path = dump_.path;
        return read;
    }

private:
    Made &add(int32_t op, int32_t peer, uint64_t sequence, CallRecord::State state, int32_t line,
              int64_t count, double age_s)
    {
        DumpedCall made;
        yoke_comm_signature &signature = made.call.signature;
        const bool is_between = op == YOKE_COMM_SEND || op == YOKE_COMM_RECV;
        signature = {dump_.group, sequence, count, op, YOKE_F32, -1, -1, 0, 0};
        if (op == YOKE_COMM_ALL_REDUCE) signature.reduction = YOKE_REDUCE_SUM;
        if (op == YOKE_COMM_BARRIER) signature.dtype = YOKE_NONE, signature.count = 0;
        if (is_between) {
            signature.op = YOKE_COMM_SEND;
            signature.root = op == YOKE_COMM_SEND ? peer : dump_.rank;
        }
        made.call.op = op;
        made.call.peer = peer;
        made.call.state = state;
        made.call.queued_s = kNow - age_s;
        if (state != CallRecord::kQueued) made.call.began_s = kNow - age_s;
        if (state == CallRecord::kDone) made.call.ended_s = kNow - age_s + 1;
        made.file = "t.py";
        made.line = line;
        made.function = "step";
        dump_.records.push_back(made);
        return *this;
    }

    Dump dump_;
};

inline constexpr CallRecord::State kDone = CallRecord::kDone, kRunning = CallRecord::kRunning,
                                   kQueued = CallRecord::kQueued, kFailed = CallRecord::kFailed;
inline constexpr int32_t kReduce = YOKE_COMM_ALL_REDUCE, kBarrier = YOKE_COMM_BARRIER;

}  // namespace yoke::test
