#include "tests/fuzz/memory/program.h"

#include "core/memory/alloc_conf.h"
#include "tests/core/fresh_process.h"
#include "tests/core/memory/units.h"
#include "tests/fuzz/memory/scene.h"

#include <sys/wait.h>
#include <unistd.h>

namespace yoke::fuzz {

namespace {

using test::kMiB;

constexpr uint64_t kMostLive = 150;
constexpr auto kEntries = static_cast<uint64_t>(HollowEntry::count);

class Program {
public:
    Program(Choices &choices, Tally &tally) : choices_(choices), tally_(tally) {}
    void run();

private:
    using Step = void (Program::*)();

    // ---- steps ----
    void alloc();
    void alloc_raw();
    void free_some();
    void use();
    void use_up_to_event();
    void run_work();
    void wait_for_stream();
    void change_stream();
    void end_thread();
    void begin_capture();
    void end_capture();
    void replay();
    void empty();
    void toggle_caching();
    void change_conf();
    void plan_failure();
    void reset_figures();
    void free_wrongly();
    void fork_child();

    uint64_t any_size();

    Choices &choices_;
    Tally &tally_;
    Scene scene_{choices_, tally_};
    test::Machine &machine_ = scene_.machine;
    Device &device_ = machine_.device;
    std::vector<Live> &live_ = scene_.live;
    const Ref<Event> events_[2] = {make_event(false), make_event(false)};
};

uint64_t Program::any_size()
{
    switch (choices_.below(8)) {
        case 0:
        case 1:
            return 1 + choices_.below(4096);
        case 2:
            return 1 + choices_.below(65536) * 16;
        case 3:
            return (1 + choices_.below(16)) * kMiB - 1 + choices_.below(3);
        case 4:
            return (1 + choices_.below(600)) * 4096;
        case 5:
            return (1 + choices_.below(64)) * kMiB;
        case 6:
            return 1 + choices_.below(65536) * 1024;
        default:
            return (1 + choices_.below(1024)) * kMiB;
    }
}

// ---- requests

void Program::alloc()
{
    if (live_.size() >= kMostLive) return;
    Worker &worker = scene_.any_worker();
    const Lane &lane = scene_.any_lane();
    const uint64_t bytes = any_size();
    Live live;
    live.graph = scene_.captured_by(worker);
    const bool is_optional = choices_.one_in(8);
    const auto failure = Scene::attempt(worker, [&] {
        live.handle = (is_optional ? try_allocate_block : allocate_block)(device_, bytes, lane.id);
    });
    if (is_optional) {
        ++tally_[live.handle ? "optional, served" : "optional, refused"];
        if (!live.handle) return;
    }
    if (failure) return scene_.refuse(*failure, bytes, lane, worker);
    ASSERT_NE(live.handle, nullptr);
    live.block = *live.handle;
    EXPECT_EQ(live.block.requested, bytes);
    EXPECT_TRUE(live.graph || is_caching() || live.block.size == bytes);
    scene_.add(std::move(live), lane);
}

void Program::alloc_raw()
{
    Worker &worker = scene_.any_worker();
    if (live_.size() >= kMostLive || scene_.captured_by(worker)) return;
    const Lane &lane = scene_.any_lane();
    const uint64_t bytes = any_size();
    void *data = nullptr;
    const auto failure =
        Scene::attempt(worker, [&] { data = raw_alloc(device_, bytes, lane.native); });
    if (failure) return scene_.refuse(*failure, bytes, lane, worker);
    Live live;
    live.block.address = reinterpret_cast<uint64_t>(data);
    live.block.requested = bytes;
    live.block.size = live.block.capacity =
        is_caching() ? rounded_size(bytes, device_.info.alignment) : bytes;
    live.block.lane = lane.id;
    scene_.add(std::move(live), lane);
    ++tally_["raw blocks"];
}

void Program::free_some()
{
    if (live_.empty()) return;
    const size_t index = choices_.below(live_.size());
    if (live_[index].uses) ++tally_["freed behind other streams"];
    scene_.any_worker().run([&] { scene_.free_at(index); });
}

void Program::free_wrongly()
{
    const uint64_t somewhere = live_.empty() || choices_.one_in(2)
                                   ? HollowMemory::kFirst + choices_.below(65536) * 64
                                   : live_[choices_.below(live_.size())].block.address + 1;
    for (const Live &live : live_)
        if (live.block.address == somewhere) return;
    const auto failure =
        Scene::attempt(scene_.any_worker(), [&] { raw_free(reinterpret_cast<void *>(somewhere)); });
    EXPECT_TRUE(failure && failure->status() == YOKE_E_VALUE);
    ++tally_["wrong frees"];
}

// ---- work -----------------------------------------------------------------------------------------------------------

void Program::use()
{
    if (live_.empty()) return;
    Live &live = live_[choices_.below(live_.size())];
    if (live.graph && live.graph->worker) return;  // no work runs during a capture
    const Lane &lane = scene_.any_lane();
    const bool is_own = lane.id == live.block.lane;
    if (!is_own && !live.handle) return;  // for a raw block, the owner orders the uses
    machine_.hollow.use(lane.native, live.block.address, live.block.size);
    if (!is_own) live.uses |= lane_bit(lane.id);
}

// Work of a stream uses a block and ends before an event, one of the core's or of a script.
void Program::use_up_to_event()
{
    if (live_.empty()) return;
    Live &live = live_[choices_.below(live_.size())];
    if (!live.handle || (live.graph && live.graph->worker)) return;
    Stream &stream = *scene_.streams[choices_.below(scene_.streams.size())];
    const Ref<Event> &event = events_[choices_.below(std::size(events_))];
    const bool is_script = choices_.one_in(2);
    machine_.hollow.use(stream.lane.native, live.block.address, live.block.size);
    const auto failure = Scene::attempt(scene_.any_worker(), [&] {
        if (is_script) record_event(*event, stream);
        add_guard(live.handle->guards, is_script ? Ref<Fence>::share(event->fence)
                                                 : fence_behind(device_, stream.lane.id));
    });
    live.uses |= lane_bit(failure ? stream.lane.id : live.block.lane);
    ++tally_["uses up to an event"];
}

void Program::run_work()
{
    void *native = scene_.any_lane().native;
    for (uint64_t i = 1 + choices_.below(8); i > 0; --i) machine_.hollow.work().run_step(native);
}

void Program::wait_for_stream()
{
    Stream &recorded = *scene_.streams[choices_.below(scene_.streams.size())];
    Stream &waiting = *scene_.streams[choices_.below(scene_.streams.size())];
    const Lane &first = recorded.lane, &second = waiting.lane;
    const Ref<Event> &event = events_[choices_.below(std::size(events_))];
    const uint64_t kind = choices_.below(4);
    Scene::attempt(scene_.any_worker(), [&] {
        if (kind == 1) record_event(*event, recorded);
        if (kind == 2) wait_event(waiting, *event);
        if (kind > 0) return;
        const Ref<Fence> fence = fence_behind(device_, first.id);
        if (fence.present()) wait_fence(device_, second.id, *fence);
    });
}

// Replaces a stream: either Yoke's own or the host program's.
void Program::change_stream()
{
    if (scene_.replace_stream(choices_.below(scene_.streams.size()))) ++tally_["changed streams"];
}

void Program::end_thread()
{
    const size_t index = choices_.below(scene_.workers.size());
    if (scene_.captured_by(*scene_.workers[index])) return;
    scene_.replace_worker(index);
    ++tally_["ended threads"];
}

// ---- graphs

void Program::begin_capture()
{
    Worker &worker = scene_.any_worker();
    if (scene_.captured_by(worker) || scene_.graphs.size() >= 3) return;
    auto graph = std::make_unique<Captured>();
    const Lane &lane = scene_.any_lane();
    worker.run([&] {
        graph->pool = GraphPool::make(device_, lane.id);
        graph->pool->serve_thread();
    });
    graph->worker = &worker;
    scene_.graphs.push_back(std::move(graph));
    ++tally_["captures"];
}

// Ends the capture. If the capture has ended or is abandoned, the graph is released.
void Program::end_capture()
{
    if (scene_.graphs.empty()) return;
    Captured &graph = *scene_.graphs[choices_.below(scene_.graphs.size())];
    if (!graph.worker) return scene_.let_go(graph);
    graph.worker->run([&] { graph.pool->stop_serving_thread(); });
    graph.worker = nullptr;
    if (choices_.one_in(4)) scene_.let_go(graph);
}

void Program::replay()
{
    if (scene_.graphs.empty()) return;
    Captured &graph = *scene_.graphs[choices_.below(scene_.graphs.size())];
    if (graph.worker) return;
    const Lane &lane = scene_.any_lane();
    graph.pool->note_use(lane.id);
    for (const auto &[address, bytes] : graph.named)
        machine_.hollow.use(lane.native, address, bytes);
    ++tally_["replays"];
}

// ---- settings and failures ------------------------------------------------------------------------------------------

void Program::empty()
{
    scene_.any_worker().run([&] { empty_cache(&device_); });
}

void Program::toggle_caching()
{
    scene_.any_worker().run([&] { set_caching(!is_caching()); });
    ++tally_["switches of caching"];
}

void Program::change_conf()
{
    constexpr const char *kTexts[] = {"expandable_segments:True",
                                      "expandable_segments:False",
                                      "ask_fences:True",
                                      "ask_fences:False",
                                      "garbage_collection_threshold:0",
                                      "garbage_collection_threshold:0.5",
                                      "ask_fences:maybe",
                                      "expandable_segments:True,expandable_segments:True"};
    const uint64_t which = choices_.below(std::size(kTexts));
    const auto failure =
        Scene::attempt(scene_.any_worker(), [&] { set_alloc_conf("fuzz", kTexts[which]); });
    EXPECT_EQ(failure.has_value(), which >= 6);
}

void Program::plan_failure()
{
    if (!scene_.has_failures) return;
    const auto entry = static_cast<HollowEntry>(choices_.below(kEntries));
    const auto nth = static_cast<int64_t>(1 + choices_.below(5));
    machine_.hollow.fail_at(entry, nth, choices_.one_in(2) ? YOKE_E_OOM : YOKE_E_INTERNAL);
    ++tally_["planned failures"];
}

void Program::reset_figures()
{
    if (choices_.one_in(2)) {
        scene_.reset_peaks();
    } else {
        scene_.reset_totals();
    }
}

void Program::fork_child()
{
    if (!choices_.one_in(12)) return;
    ++tally_["forks"];
    if (!test::kMayFork) return;
    const int64_t calls = machine_.hollow.calls();
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);  // a child that hangs fails
        for (const Live &live : live_)
            if (live.handle) free_block(device_, live.handle, live.uses);
        empty_cache(&device_);
        bool is_told = false;
        try {
            allocate_block(device_, 64, 0);
        } catch (const Error &error) {
            is_told = error.status() == YOKE_E_FORKED;
        }
        _exit(is_told && machine_.hollow.calls() == calls ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "a forked child touches the device";
}

void Program::run()
{
    struct Weighed {
        Step step;
        int weight;
    };
    static constexpr Weighed kSteps[] = {
        {&Program::alloc, 60},           {&Program::alloc_raw, 12},
        {&Program::free_some, 50},       {&Program::use, 40},
        {&Program::use_up_to_event, 10}, {&Program::run_work, 25},
        {&Program::wait_for_stream, 12}, {&Program::empty, 3},
        {&Program::change_stream, 3},    {&Program::end_thread, 3},
        {&Program::begin_capture, 4},    {&Program::end_capture, 6},
        {&Program::replay, 6},           {&Program::change_conf, 4},
        {&Program::plan_failure, 8},     {&Program::reset_figures, 4},
        {&Program::free_wrongly, 3},     {&Program::toggle_caching, 2},
        {&Program::fork_child, 1}};
    int sum = 0;
    for (const Weighed &each : kSteps) sum += each.weight;
    for (uint64_t number = 0; !choices_.empty(); ++number) {
        auto drawn = static_cast<int>(choices_.below(static_cast<uint64_t>(sum)));
        const Weighed *each = kSteps;
        for (; drawn >= each->weight; ++each) drawn -= each->weight;
        (this->*each->step)();
        scene_.check(number % 16 == 0);
        if (testing::Test::HasFailure()) {
            ADD_FAILURE() << "at step " << number;
            return;
        }
        ++tally_["steps"];
    }
}

}  // namespace

void run_program(const uint8_t *bytes, size_t size, Tally &tally)
{
    Choices choices(bytes, size);
    Program program(choices, tally);
    program.run();
}

}  // namespace yoke::fuzz
