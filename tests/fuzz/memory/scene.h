// scene.h: objects of a program: a hollow device, threads, streams, blocks, graphs, and conditions.
#pragma once

#include "core/base/error.h"
#include "core/memory/graph_pool.h"
#include "tests/core/memory/conf.h"
#include "tests/core/memory/machine.h"
#include "tests/core/memory/model.h"
#include "tests/fuzz/memory/choices.h"
#include "tests/fuzz/memory/program.h"
#include "tests/fuzz/memory/worker.h"

#include <optional>

namespace yoke::fuzz {

// Graph with a begun capture.
struct Captured {
    Ref<GraphPool> pool;
    Worker *worker = nullptr;  // capturing thread; null: the capture has ended
    std::vector<std::pair<uint64_t, uint64_t>> named;  // addresses and bytes of the graph's blocks
    std::vector<Block> kept;                           // freed since the capture
};

struct Live {
    Block block;              // copy from the time of the request
    Block *handle = nullptr;  // null: a raw block
    uint16_t uses = 0;
    Captured *graph = nullptr;
};

class Scene {
public:
    Scene(Choices &choices, Tally &tally);
    // Releases all objects, and checks that no memory is left.
    ~Scene();
    Scene(const Scene &) = delete;
    Scene &operator=(const Scene &) = delete;

    const Lane &any_lane() { return streams[choices_.below(streams.size())]->lane; }
    Worker &any_worker() { return *workers[choices_.below(workers.size())]; }
    Captured *captured_by(const Worker &worker);
    // Runs the call in a thread; returns the error.
    static std::optional<Error> attempt(Worker &worker, const std::function<void()> &call);

    // Takes over a block from a request for `lane`.
    void add(Live &&live, const Lane &lane);
    // Checks that no block could have served a refused request.
    void refuse(const Error &error, uint64_t bytes, const Lane &lane, const Worker &worker);
    // Frees a block in the calling thread.
    void free_at(size_t index);
    // Returns false for a stream that cannot be replaced now.
    bool replace_stream(size_t index);
    void replace_worker(size_t index);
    void let_go(Captured &graph);

    void reset_peaks();
    void reset_totals();
    // Checks every promise; `with_figures`: those of memory_stats() too.
    void check(bool with_figures);

    const test::Conf conf{""};  // restores the settings at the end
    test::Machine machine;
    Device &device = machine.device;
    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<Ref<Stream>> streams;
    std::vector<Live> live;
    std::vector<std::unique_ptr<Captured>> graphs;
    test::Model model;
    bool has_failures = false;  // entries of the backend may fail

private:
    static HollowOptions options_from(Choices &choices);
    static int32_t relieve(void *self, yoke_device *device, int64_t bytes);
    void check_blocks();
    void check_peaks();
    // Returns how many blocks and chunks the backend has given.
    int64_t pieces();

    Choices &choices_;
    Tally &tally_;
    std::vector<ThreadCache *> caches_;  // caches of workers
    std::vector<void *> host_streams_;   // natives that streams wrap
    bool has_exact_peaks_ = true;
    Amounts most_active_[3],
        most_reserved_[3];      // in checks since the peaks' restart
    int64_t first_pieces_ = 0;  // when the totals started anew
    uint64_t relief_left_ = 0;  // blocks that the callback may free
    int64_t relief_id_ = 0;
};

}  // namespace yoke::fuzz
