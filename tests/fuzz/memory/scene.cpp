#include "tests/fuzz/memory/scene.h"

#include "core/memory/relief.h"
#include "tests/core/memory/units.h"
#include "tests/core/memory/walk.h"

#include <algorithm>

namespace yoke::fuzz {

using test::kGiB;
using test::kMiB;

HollowOptions Scene::options_from(Choices &choices)
{
    constexpr uint64_t kCapacities[] = {64 * kMiB, 256 * kMiB, kGiB, 300 * kMiB + 12345};
    return {.capacity = kCapacities[choices.below(4)],
            .unit = choices.one_in(4) ? 64 << 10 : 2 * kMiB,
            .alignment = choices.one_in(2) ? 512u : 64u,
            .has_virtual_memory = choices.one_in(2),
            .runs_at_once = choices.one_in(8)};
}

Scene::Scene(Choices &choices, Tally &tally)
    : machine(options_from(choices)), choices_(choices), tally_(tally)
{
    mark_process_used();  // as when a device is opened: a forked child must know of the start
    has_failures = choices_.one_in(2);
    workers.resize(1 + choices_.below(3));
    has_exact_peaks_ = workers.size() == 1;
    caches_.resize(workers.size());
    for (size_t i = 0; i < workers.size(); ++i) {
        workers[i] = std::make_unique<Worker>();
        workers[i]->run([&] { caches_[i] = ThreadCache::of_thread(); });
    }
    streams.push_back(current_stream(device));
    const uint64_t more = choices_.below(4);
    for (uint64_t i = 0; i < more; ++i) streams.push_back(make_stream(device, 0));
    host_streams_.resize(streams.size());
    if (choices_.one_in(3)) {
        relief_left_ = 20;
        relief_id_ = add_relief(ReliefKind::kCallback, relieve, this, nullptr);
    }
    if (choices_.one_in(6)) set_caching(false);
}

Scene::~Scene()
{
    if (relief_id_) remove_relief(ReliefKind::kCallback, relief_id_);
    for (size_t i = 0; i < static_cast<size_t>(HollowEntry::count); ++i)
        machine.hollow.fail_at(static_cast<HollowEntry>(i), 0, YOKE_OK);
    while (!graphs.empty()) {
        Captured &graph = *graphs.back();
        if (graph.worker) graph.worker->run([&] { graph.pool->stop_serving_thread(); });
        graph.worker = nullptr;
        let_go(graph);
    }
    while (!live.empty()) workers[0]->run([this] { free_at(live.size() - 1); });
    check(true);
    EXPECT_EQ(memory_stats(device).allocated, 0);
    workers.clear();
    streams.clear();
}

std::optional<Error> Scene::attempt(Worker &worker, const std::function<void()> &call)
{
    std::optional<Error> failure;
    worker.run([&] {
        try {
            call();
        } catch (const Error &error) {
            failure = error;
        }
    });
    return failure;
}

Captured *Scene::captured_by(const Worker &worker)
{
    for (const auto &graph : graphs)
        if (graph->worker == &worker) return graph.get();
    return nullptr;
}

void Scene::add(Live &&added, const Lane &lane)
{
    const Block &block = added.block;
    for (const Live &other : live)
        EXPECT_TRUE(block.end() <= other.block.address || other.block.end() <= block.address)
            << "a block was given twice";
    EXPECT_EQ(block.address % device.info.alignment, 0u);
    EXPECT_TRUE(machine.hollow.memory().is_backed(block.address, block.size));
    if (added.graph) {
        // Replays on any stream will use the memory, so the host program has seen the end of all work there.
        machine.ordering.on_gone(block.address, block.size);
        added.graph->named.emplace_back(block.address, block.size);
    } else {
        machine.ordering.hand_out(lane.native, block.address, block.size);
    }
    model.alloc(block);
    live.push_back(std::move(added));
    ++tally_["served"];
}

void Scene::refuse(const Error &error, uint64_t bytes, const Lane &lane, const Worker &worker)
{
    ++tally_[error.status() == YOKE_E_OOM ? "refused" : "failed"];
    if (has_failures) return;
    ASSERT_EQ(error.status(), YOKE_E_OOM) << error.what();
    Captured *graph = captured_by(worker);
    const uint64_t size =
        graph || is_caching() ? rounded_size(bytes, device.info.alignment) : bytes;
    const bool is_small = size <= kMaxSmall;
    const Arena *arena = graph          ? &graph->pool->arena(is_small)
                         : is_caching() ? &memory_of(device).arena(lane.id, is_small)
                                        : nullptr;
    if (graph) ++tally_["refused in a capture"];
    const std::string way = way_on(machine, {size, arena, !graph});
    EXPECT_EQ(way, "") << bytes << " bytes were refused: " << error.what();
    for (ThreadCache *cache : caches_)
        EXPECT_EQ(cache->bytes_of(device), 0u) << "a magazine was not emptied";
    if (graph) return;
    const test::Figures figures = test::figures_of(device);
    EXPECT_EQ(figures.at("active_bytes.all.current").number,
              figures.at("allocated_bytes.all.current").number)
        << "blocks still wait for other streams";
}

void Scene::free_at(size_t index)
{
    Live gone = live[index];
    live[index] = live.back();
    live.pop_back();
    if (!gone.handle) return raw_free(gone.block.data()), model.free(gone.block);
    if (gone.graph && !gone.graph->worker)
        gone.graph->kept.push_back(gone.block);
    else
        model.free(gone.block);
    free_block(device, gone.handle, gone.uses);
}

int32_t Scene::relieve(void *self, yoke_device *device, int64_t)
{
    Scene &scene = *static_cast<Scene *>(self);
    if (device != &scene.device || !scene.relief_left_ || scene.live.empty()) return 0;
    --scene.relief_left_;
    ++scene.tally_["asked for relief"];
    scene.free_at(scene.live.size() / 2);
    return 1;
}

bool Scene::replace_stream(size_t index)
{
    if (index == 0) return false;
    for (const auto &graph : graphs)
        if (graph->worker) return false;
    const yoke_backend &table = machine.hollow.table();
    streams[index] = nullptr;
    if (void *host = std::exchange(host_streams_[index], nullptr))
        table.stream_destroy(device.handle, host);
    void *native = nullptr;
    const bool is_host = choices_.one_in(2);
    if (is_host && table.stream_create(device.handle, 0, &native) == YOKE_OK) {
        host_streams_[index] = native;
        attempt(any_worker(), [&] { streams[index] = wrap_stream(device, native); });
    } else {
        attempt(any_worker(), [&] { streams[index] = make_stream(device, 0); });
    }
    if (streams[index].present()) return true;
    streams.erase(streams.begin() + static_cast<std::ptrdiff_t>(index));
    host_streams_.erase(host_streams_.begin() + static_cast<std::ptrdiff_t>(index));
    return true;
}

void Scene::replace_worker(size_t index)
{
    workers[index] = nullptr;
    workers[index] = std::make_unique<Worker>();
    workers[index]->run([&] { caches_[index] = ThreadCache::of_thread(); });
    has_exact_peaks_ = false;
}

void Scene::let_go(Captured &graph)
{
    for (const Block &block : graph.kept) model.free(block);
    workers[0]->run([&] { graph.pool->let_go(); });
    for (Live &each : live)
        if (each.graph == &graph) each.graph = nullptr;
    std::erase_if(graphs, [&](const auto &each) { return each.get() == &graph; });
}

void Scene::check_blocks()
{
    uint64_t bare = 0, bare_small = 0, cached = 0, kept = 0;
    bool has_raw = false;
    for (const Live &each : live) {
        const bool is_bare = each.handle ? !each.handle->arena : false;
        (is_bare ? bare : cached) += each.block.size;
        has_raw |= !each.handle;
        if (is_bare && each.block.size <= kMaxSmall) bare_small += each.block.size;
        if (!each.handle) continue;
        EXPECT_EQ(each.handle->address, each.block.address);
        EXPECT_EQ(each.handle->size, each.block.size);
        EXPECT_EQ(each.handle->state, BlockState::kUsed);
    }
    for (const auto &graph : graphs)
        for (const Block &block : graph->kept) kept += block.size;
    const test::Walk walk(machine);
    for (const std::string &fault : walk.faults()) ADD_FAILURE() << fault;
    const MemoryStats stats = memory_stats(device);
    EXPECT_EQ(stats.reserved, static_cast<int64_t>(machine.hollow.memory().used()));
    const MemoryCounters &counters = memory_of(device).counters();
    // Raw blocks may lie in arenas or be blocks of the backend; a scene does not know the kind.
    EXPECT_TRUE(has_raw || counters.reserved().now[kSmallPool].bytes ==
                               static_cast<int64_t>(walk.small + bare_small));
    const auto waiting = static_cast<uint64_t>(counters.active().now[kAllPools].bytes -
                                               counters.blocks().now[kAllPools].bytes);
    uint64_t magazines = 0;
    for (ThreadCache *cache : caches_) magazines += cache->bytes_of(device);
    // Raw blocks may be of either kind.
    const uint64_t all = static_cast<uint64_t>(stats.reserved) - walk.mapped + walk.used;
    EXPECT_EQ(all, bare + cached + kept + waiting + magazines);
    EXPECT_TRUE(is_caching() || magazines == 0);
    EXPECT_EQ(
        counters.events(MemoryEvent::kDeviceAlloc) - counters.events(MemoryEvent::kDeviceFree),
        pieces() - first_pieces_);
}

int64_t Scene::pieces()
{
    const HollowMemory &memory = machine.hollow.memory();
    return static_cast<int64_t>(memory.block_count() + memory.chunk_count());
}

void Scene::reset_peaks()
{
    reset_peak_memory_stats(device);
    model.reset_peaks();
    for (int pool = 0; pool < 3; ++pool) most_active_[pool] = most_reserved_[pool] = {};
}

void Scene::reset_totals()
{
    reset_accumulated_memory_stats(device);
    model.reset_totals();
    first_pieces_ = pieces();
}

// Compares peaks. A peak is at least the amount at any time. With several threads this holds only for all bytes
// together, less the bytes that threads may hold apart.
void Scene::check_peaks()
{
    const MemoryCounters &counters = memory_of(device).counters();
    const PoolStats active = counters.active(), reserved = counters.reserved();
    const int64_t apart =
        has_exact_peaks_ ? 0 : static_cast<int64_t>(workers.size()) * (int64_t{64} << 10);
    for (const int pool : {kSmallPool, kLargePool, kAllPools}) {
        most_active_[pool].raise_to(active.now[pool]);
        most_reserved_[pool].raise_to(reserved.now[pool]);
        EXPECT_GE(reserved.peak[pool].bytes, most_reserved_[pool].bytes) << pool;
        EXPECT_GE(reserved.peak[pool].count, most_reserved_[pool].count) << pool;
        if (!has_exact_peaks_ && pool != kAllPools) continue;
        EXPECT_GE(active.peak[pool].bytes, most_active_[pool].bytes - apart) << pool;
        EXPECT_TRUE(apart || active.peak[pool].count >= most_active_[pool].count) << pool;
    }
}

void Scene::check(bool with_figures)
{
    check_blocks();
    check_peaks();
    for (const std::string &race : machine.ordering.races()) ADD_FAILURE() << race;
    if (!with_figures) return;
    const test::Figures figures = test::figures_of(device);
    EXPECT_EQ(model.differences(figures, has_exact_peaks_), "");
    const int64_t told = figures.at("allocated_bytes.all.peak").number;
    const auto apart = static_cast<int64_t>(workers.size()) * (int64_t{64} << 10);
    if (has_exact_peaks_ || testing::Test::HasFailure()) return;
    EXPECT_GE(told, model.peak[kAllPools].bytes - apart);
}

}  // namespace yoke::fuzz
