// replay.h: what a walk over the tape has had made again of recordings (core/ops/recompute/recording.h).
//
// The walk's first look at a slot launches the calls that its recording needs; what they make stays with the walk until
// as many have taken it as hold it. Each walk has its own: two threads that walk one recording do not wait for each
// other. When the walk ends, whatever is left goes.
#pragma once

#include "core/autograd/backward.h"
#include "core/ops/recompute/budget_run.h"
#include "core/ops/recompute/call_log.h"
#include "core/ops/recompute/recording.h"

#include <memory>
#include <unordered_map>

namespace yoke {

class Replays final : public WalkState {
public:
    // From now to its end, the calling thread's walk; nothing is logged meanwhile.
    Replays();
    ~Replays() override;
    Replays(const Replays &) = delete;
    Replays &operator=(const Replays &) = delete;
    static Replays &of_thread();

    // The memory behind a slot, at the end of its recording. Raises what an op of the scope may raise, and STATE where
    // something that it reads has changed since. `reader` is for messages.
    Ref<Storage> take(const Slot &slot, const char *reader);

    void begin_node(const Node &node) override;
    void end_node(const Node &node) override;

private:
    struct Made {
        Ref<Storage> storage;
        uint32_t left = 0;  // how many more will take it
    };
    struct Replay {
        Ref<Recording> recording;
        std::unordered_map<const Item *, Made> made;
        uint32_t offloaded = 0;  // how many takes of what waits in the host's memory are to come
        std::vector<Ref<Offloaded>> brought;
    };
    struct Returning {
        Ref<Offloaded> offloaded;
        Offloaded::Return back;
    };
    class Run;

    void make(Recording &recording, const Item &wanted, const char *reader);
    Replay &begin(Recording &recording);
    void bring_back(const Ref<Offloaded> &offloaded);
    Ref<Storage> storage_of(const Ref<Offloaded> &offloaded);
    Ref<Storage> take_offloaded(Recording &recording, const Item &item);
    void end_if_done(const Recording &recording);
    void watch(BudgetRun &run);

    NoLog quiet_;
    Replays *const before_;
    Scope *const aside_before_;
    std::unordered_map<const Recording *, Replay> replays_;
    std::unordered_map<const Offloaded *, Returning> returning_;
    Ref<BudgetRun> run_;  // the memory budget that wants to know what the walk takes
};

}  // namespace yoke
