#include "core/ops/graph.h"

#include "core/base/thread_state.h"
#include "core/ops/autocast.h"
#include "core/ops/engines.h"
#include "core/ops/launch_copy.h"
#include "core/ops/ops.h"
#include "core/ops/tf32.h"
#include "core/tensor/snapshot.h"

#include <cstddef>
#include <memory>
#include <mutex>

namespace yoke {

// Launch of a capture, kept to run without a native graph.
struct RecordedLaunch {
    RecordedLaunch(const OpDef &op, const yoke_launch &from, yoke_kernel_fn function,
                   bool is_placed)
        : kernel(function),
          block(std::make_unique<std::max_align_t[]>(
              (launch_copy_bytes(from) + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t))),
          launch(copy_launch(from, block.get())),
          drawn_at(is_placed ? -1 : offset_param(op)),
          offset(drawn_at < 0 ? 0 : launch->params[drawn_at].v.i)
    {
    }
    void run(const Device &device, int64_t random_base);

    const yoke_kernel_fn kernel;
    const std::unique_ptr<std::max_align_t[]> block;
    yoke_launch *const launch;  // in the block
    const int drawn_at;         // index of the parameter with the place of draws, or -1
    const int64_t offset;       // value at the capture
};

void RecordedLaunch::run(const Device &device, int64_t random_base)
{
    // Offsets are 64 bits that go round: yoke_set_rng_state takes any.
    if (drawn_at >= 0)
        const_cast<yoke_arg *>(launch->params)[drawn_at].v.i = static_cast<int64_t>(
            static_cast<uint64_t>(offset) + static_cast<uint64_t>(random_base));
    const auto start = device.backend->launch;
    check_backend(start ? start(launch, kernel) : kernel(launch), kOps[launch->op].name,
                  device.name.c_str());
}

// ---- capture ------------------------------------------------------------------------------------------------------

static std::atomic<uint64_t> graphs_made{0};

Graph::Graph(Device &device)
    : number_(graphs_made.fetch_add(1, std::memory_order_relaxed) + 1), device_(device)
{
}

Graph::~Graph()
{
    if (native_) device_.backend->graph_destroy(device_.handle, native_);
    forget();
}

namespace {

// Graphs ready for replay, for note_left(). The set of storages of such a graph never changes.
struct ReadyGraphs {
    std::mutex mutex;
    std::unordered_set<Graph *> all;
};

// Returns the set of ready graphs. The set is never destroyed: a graph may live longer than the statics destroyed at
// the end of the process.
ReadyGraphs &ready_graphs()
{
    static auto *graphs = new ReadyGraphs;
    return *graphs;
}

}  // namespace

void Graph::note_left(Storage *storage) noexcept
{
    ReadyGraphs &ready = ready_graphs();
    const std::lock_guard lock(ready.mutex);
    for (Graph *graph : ready.all)
        if (graph->held_.contains(storage) && !graph->ahead_.contains(storage))
            graph->is_left_.store(true, std::memory_order_relaxed);
}

// Releases everything captured, so the graph is empty. The state is set last: a thread that gives a capture up holds
// no single-user check, and another thread may begin a capture from then on.
void Graph::forget() noexcept
{
    {
        const std::lock_guard lock(ready_graphs().mutex);
        ready_graphs().all.erase(this);
    }
    launches_.clear();
    for (Storage *storage : held_) storage->release();
    held_.clear();
    written_.clear();
    ahead_.clear();
    if (pool_.present()) pool_->let_go();
    pool_ = {};
    state_.store(State::kEmpty, std::memory_order_release);
}

void Graph::check_empty() const
{
    if (of_thread())
        fail(YOKE_E_STATE, "capture: this thread already captures a graph; end that capture first");
    if (state_ != State::kEmpty)
        fail(YOKE_E_STATE,
             "capture: this graph was captured before; make another Graph for another step");
}

void Graph::begin()
{
    check_empty();
    check_usable(device_);
    if (is_native() && !random_base_.get()) random_base_ = ops::zeros({}, YOKE_I64, &device_);
    synchronize(device_);  // earlier work belongs to no graph
    pool_ = GraphPool::make(device_, memory_lane(device_));
    try {
        if (is_native()) begin_native();
    } catch (...) {
        pool_->let_go();
        pool_ = {};
        throw;
    }
    pool_->serve_thread();
    retain();  // the thread's reference, until leave_thread: a graph under capture must not end
    thread_state().graph = this;
    random_before_ = random_state();
    thread_state().random.offset = 0;  // places behind the base of a replay
    state_ = State::kCapturing;
}

void Graph::begin_native()
{
    auto stream = std::make_unique<CaptureStream>(device_);
    check_backend(
        device_.backend->graph_begin(device_.handle, stream->native(), tf32_flag() | cudnn_flags()),
        "capture", device_.name.c_str());
    stream_ = std::move(stream);
}

// Ends the native capture and gives the captured graph. The capture is over whatever the status is.
yoke_status Graph::end_native(void **graph) noexcept
{
    const yoke_status status = device_.backend->graph_end(device_.handle, stream_->native(), graph);
    stream_.reset();
    return status;
}

// Restores the thread's state from before begin(). Returns the thread's reference to the graph.
Ref<Graph> Graph::leave_thread() noexcept
{
    random_drawn_ = random_state().offset;
    thread_state().random = random_before_;
    thread_state().graph = nullptr;
    pool_->stop_serving_thread();
    forget_captured_casts(number_);
    return Ref<Graph>::adopt(this);
}

void Graph::end()
{
    if (of_thread() != this)
        fail(
            YOKE_E_STATE,
            "capture: this thread is not capturing this graph; end a capture in the thread that began it");
    const auto held = leave_thread();
    const yoke_status status = is_native() ? end_native(&native_) : YOKE_OK;
    if (status != YOKE_OK) forget();
    check_backend(status, "capture", device_.name.c_str());
    {
        const std::lock_guard lock(ready_graphs().mutex);
        ready_graphs().all.insert(this);
    }
    state_ = State::kReady;
}

void Graph::abort() noexcept
{
    if (of_thread() != this) return;
    const auto held = leave_thread();
    void *unfinished = nullptr;
    if (is_native() && end_native(&unfinished) == YOKE_OK)
        device_.backend->graph_destroy(device_.handle, unfinished);
    forget();
}

// Ends the capture of an ending thread, since no other thread can end it.
void detail::drop_graph(Graph *graph) noexcept
{
    graph->abort();
}

void Graph::release_handle() noexcept
{
    // The only references are the thread's own and the handle's: no other caller could end the capture.
    if (of_thread() == this && use_count() == 2) abort();
    release();
}

void Graph::hold(Storage *storage, bool written, bool is_ahead)
{
    if (!storage) return;
    if (storage->is_graph_owned() && pool_->owns(*storage->block()))
        return;  // its memory stays, and may serve again within the capture; another graph's may go
    const bool is_new = held_.insert(storage).second;
    if (is_new) storage->retain();
    if (!is_ahead)
        ahead_.erase(storage);
    else if (is_new)
        ahead_.insert(storage);
    if (written) written_.insert(storage);
}

bool Graph::take(const OpDef &op, yoke_launch &launch, yoke_kernel_fn kernel,
                 std::span<Storage *const> storages, bool is_placed)
{
    if (launch.device != device_.handle)
        fail(
            YOKE_E_STATE,
            "%s: a graph of %s is being captured, but this call works on another device, so replays would not repeat it; make the call before or after",
            op.name, device_.name.c_str());
    for (size_t i = 0; i < storages.size(); ++i)
        hold(storages[i], launch.operands[i].flags & YOKE_OPERAND_WRITE,
             launch.op == YOKE_OP__CAST_ALL);
    if (is_native()) {
        launch.stream = stream_->native();
        launch.random_base =
            is_placed ? nullptr : reinterpret_cast<const int64_t *>(random_base_->data);
        return false;
    }
    launches_.push_back(std::make_unique<RecordedLaunch>(op, launch, kernel, is_placed));
    return true;
}

Uncaptured::Uncaptured() : graph_(thread_state().graph), graph_pool_(thread_state().graph_pool)
{
    thread_state().graph = nullptr;
    thread_state().graph_pool = nullptr;
}

Uncaptured::~Uncaptured()
{
    thread_state().graph = graph_;
    thread_state().graph_pool = graph_pool_;
}

// ---- replay --------------------------------------------------------------------------------------------------------

// Notes that the current stream uses the graph's memory: this use must end before the memory serves other callers.
void Graph::note_replay()
{
    if (!device_.has_side_streams.load(std::memory_order_relaxed)) return;
    const uint8_t lane = memory_lane(device_);
    pool_->note_use(lane);
    for (Storage *storage : held_) storage->note_use(lane);
}

// Reports to snapshots the memory that a replay is about to write.
void Graph::see_to_snapshots()
{
    for (const Ref<Storage> &each : wanted_storages())
        if (written_.contains(each.get()) ||
            (each->is_graph_owned() && pool_->owns(*each->block())))
            before_write(*each);
}

void Graph::replay()
{
    if (Graph *other = of_thread())
        fail(YOKE_E_STATE,
             "replay: this thread captures %s graph; end the capture before the replay",
             other == this ? "this" : "another");
    if (state_ != State::kReady)
        fail(YOKE_E_STATE, "replay: the graph has no captured step; use capture() first");
    if (is_left_)
        fail(
            YOKE_E_STATE,
            "replay: a parameter, or another leaf of the graph, has moved since the capture (by to() of a module, or to_()), so the replay would use its former memory; capture the step again, in another Graph");
    check_usable(device_);
    const auto base = static_cast<int64_t>(random_state().offset);
    thread_state().random.offset += random_drawn_;
    note_replay();
    if (has_snapshots()) see_to_snapshots();
    if (is_native()) {
        if (random_drawn_) ops::fill_(*random_base_, arg_int(base));
        check_backend(
            device_.backend->graph_launch(device_.handle, native_, current_native(device_)),
            "replay", device_.name.c_str());
    }
    for (const auto &recorded : launches_) recorded->run(device_, base);
    for (Storage *storage : written_) storage->note_written(storage->last_writer());
    pool_->each_storage([](Storage &storage) { storage.note_written("a replay of its graph"); });
}

}  // namespace yoke
