// replay.h: values recomputed from recordings for a walk over the tape (core/ops/recompute/recording.h).
//
// At its first look at a slot, the walk launches the calls needed by the recording. The results stay with the walk
// until every holder has taken them. Each walk has its own results, so two threads walking the same recording do not
// wait for each other. At the walk's end, all remaining results are released.
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
    // Begins the calling thread's walk; nothing is logged until its end.
    Replays();
    ~Replays() override;
    Replays(const Replays &) = delete;
    Replays &operator=(const Replays &) = delete;
    static Replays &of_thread();

    // Returns the memory behind a slot, with the contents at the end of the recording. Raises the errors of the
    // scope's ops, and STATE if memory to read has changed since. `reader` is for messages.
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
    Ref<BudgetRun> run_;  // memory budget that measures the walk
};

}  // namespace yoke
