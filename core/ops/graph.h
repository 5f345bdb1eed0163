// graph.h: a whole step, captured once and replayed: a CUDA graph, or on other backends the launches themselves.
//
// During a capture, nothing runs: launches of the thread on the graph's device are recorded, with their memory. The
// graph holds this memory until its end. Calls that would wait for the device, or work elsewhere, are refused by
// name: they would happen once, at the capture, and never again.
//
// A replay draws new random numbers. Each captured op draws at a fixed distance from a base on the device, and every
// replay advances the base. Numbers computed by the host program (a learning rate) are fixed at the capture.
#pragma once

#include "core/base/random.h"
#include "core/base/turn.h"
#include "core/device/capture.h"
#include "core/memory/graph_pool.h"
#include "core/ops/op_def.h"
#include "core/tensor/tensor.h"

#include <atomic>
#include <memory>
#include <span>
#include <unordered_set>

namespace yoke {

struct RecordedLaunch;  // graph.cpp

class Graph final : public RefCounted {
public:
    explicit Graph(Device &device);
    Turns turns;  // a single thread at a time captures or replays

    // Begins to capture the calling thread's launches on the device, after a wait for earlier work. Raises
    // YOKE_E_STATE if this graph was captured before, or the thread captures another.
    void begin();
    void end();
    void abort() noexcept;  // gives the capture up; the graph stays empty
    // Releases a handle's reference. The last handle also gives up a capture of the calling thread.
    void release_handle() noexcept;
    void replay();
    // Makes replays raise YOKE_E_STATE for each captured graph that names the storage: a leaf has moved out of the
    // storage, so the leaf would not get a replay's results.
    static void note_left(Storage *storage) noexcept;

    // Takes each launch of the capturing thread, with the storage of each operand, or null. Returns true if the
    // launch is recorded and must not run. Raises YOKE_E_STATE for a launch on another device. `is_placed`: each
    // replay draws the same numbers.
    bool take(const OpDef &op, yoke_launch &launch, yoke_kernel_fn kernel,
              std::span<Storage *const> storages, bool is_placed);

    // Notes that the captured work needs the storage, for which a call gave only a cast ahead (cast_cache.h).
    void note_read(Storage *storage) { hold(storage, false, false); }

    // Returns the graph's number, from 1 on, and never another graph's.
    uint64_t number() const noexcept { return number_; }

    // Returns the graph that the calling thread captures, or nullptr.
    static Graph *of_thread() noexcept
    {
        const ThreadState *state = known_thread_state();
        return state ? state->graph : nullptr;
    }
    static uint64_t number_of_thread() noexcept
    {
        const Graph *graph = of_thread();
        return graph ? graph->number_ : 0;
    }

private:
    enum class State { kEmpty, kCapturing, kReady };

    ~Graph() override;
    bool is_native() const noexcept { return device_.backend->graph_begin != nullptr; }
    void check_empty() const;
    void begin_native();
    yoke_status end_native(void **graph) noexcept;
    Ref<Graph> leave_thread() noexcept;
    void forget() noexcept;
    void hold(Storage *storage, bool written, bool is_ahead);
    void note_replay();
    void see_to_snapshots();

    const uint64_t number_;
    Device &device_;
    std::atomic<State> state_{State::kEmpty};
    std::atomic<bool> is_left_{false};  // a leaf used by the graph has moved
    void *native_ = nullptr;
    std::unique_ptr<CaptureStream> stream_;  // while a native graph is captured
    Ref<GraphPool> pool_;
    std::vector<std::unique_ptr<RecordedLaunch>> launches_;
    std::unordered_set<Storage *> held_, written_;  // a reference to each that is held
    std::unordered_set<Storage *> ahead_;  // held only for casts ahead: a leaf may leave these
    Tensor random_base_;  // int64, on the device; null: the backend reads it from the record
    RandomState random_before_{};
    uint64_t random_drawn_ = 0;
};

// Scope outside any capture: work in the scope happens at once, on memory of its own.
class Uncaptured {
public:
    Uncaptured();
    ~Uncaptured();
    Uncaptured(const Uncaptured &) = delete;
    Uncaptured &operator=(const Uncaptured &) = delete;

private:
    Graph *const graph_;
    GraphPool *const graph_pool_;
};

namespace detail {
// Gives up the capture of an ending thread. Serves an entry of core/base/lent.h.
void drop_graph(Graph *graph) noexcept;
}  // namespace detail

}  // namespace yoke
