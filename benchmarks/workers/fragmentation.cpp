// fragmentation.cpp: replays a trace of requests on a hollow device and prints the reserved memory.
//
//   fragmentation FILE virtual|plain|torch|expandable
//
// prints a line of JSON: bytes of the requested peak and of the reserved peak, calls of the driver, and the calls
// after each quarter of the trace. FILE has the format of RMM's logging adaptor.
#include "benchmarks/workers/torch_policy.h"
#include "core/memory/device_memory.h"
#include "core/memory/hollow.h"
#include "core/memory/memory.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

namespace {

struct Row {
    bool is_alloc;
    uint64_t number, bytes;
    int stream;
};

std::vector<Row> read(const char *path)
{
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    std::vector<Row> rows;
    while (std::getline(file, line)) {
        char action[32] = "";
        Row row{};
        unsigned long long number = 0, bytes = 0;
        if (sscanf(line.c_str(), "%*d,%*d,%31[^,],%llx,%llu,%d", action, &number, &bytes,
                   &row.stream) != 4) {
            fprintf(stderr, "%s: not a line of a trace: %s\n", path, line.c_str());
            exit(1);
        }
        row.is_alloc = strcmp(action, "allocate") == 0;
        row.number = number;
        row.bytes = bytes;
        rows.push_back(row);
    }
    return rows;
}

// Calls of the driver so far, at the end of each quarter.
struct Result {
    int64_t requested = 0, reserved = 0;
    std::vector<int64_t> calls;
};

template <class Alloc, class Free, class Calls>
Result replay(const std::vector<Row> &rows, const Alloc &alloc, const Free &free,
              const Calls &calls)
{
    Result result;
    int64_t live = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
        const Row &row = rows[i];
        live += row.is_alloc ? static_cast<int64_t>(row.bytes) : -static_cast<int64_t>(row.bytes);
        result.requested = std::max(result.requested, live);
        if (row.is_alloc)
            alloc(row);
        else
            free(row);
        if ((i + 1) * 4 / rows.size() != i * 4 / rows.size()) result.calls.push_back(calls());
    }
    return result;
}

Result replay_yoke(const std::vector<Row> &rows, bool is_virtual)
{
    yoke::Hollow hollow({.capacity = uint64_t{1} << 40, .has_virtual_memory = is_virtual});
    auto *device = new yoke::Device;  // its memory lives as long as the process
    device->backend = &hollow.table();
    device->handle = hollow.handle();
    device->name = "hollow:0";
    device->info.alignment = 512;
    yoke::set_caching(true);
    std::map<int, yoke::Ref<yoke::Stream>> streams;
    std::map<uint64_t, yoke::Block *> live;
    Result result = replay(
        rows,
        [&](const Row &row) {
            yoke::Ref<yoke::Stream> &stream = streams[row.stream];
            if (!stream.present()) stream = yoke::make_stream(*device, 0);
            live[row.number] = yoke::allocate_block(*device, row.bytes, stream->lane.id);
        },
        [&](const Row &row) {
            const auto found = live.find(row.number);
            yoke::free_block(*device, found->second);
            live.erase(found);
        },
        [&] { return hollow.calls(); });
    result.reserved = yoke::memory_stats(*device).max_reserved;
    yoke::empty_cache(device);
    return result;
}

class Endless final : public TorchPolicy::Source {
public:
    uint64_t alloc(uint64_t bytes) override { return std::exchange(next_, next_ + bytes); }
    void free(uint64_t, uint64_t) override {}
    uint64_t reserve() override
    {
        return std::exchange(next_range_, next_range_ + (uint64_t{1} << 44));
    }

private:
    uint64_t next_ = uint64_t{1} << 30, next_range_ = uint64_t{1} << 50;
};

Result replay_torch(const std::vector<Row> &rows, bool is_expandable)
{
    Endless source;
    TorchPolicy policy(source, is_expandable);
    std::map<uint64_t, uint64_t> live;
    Result result = replay(
        rows, [&](const Row &row) { live[row.number] = policy.alloc(row.bytes, row.stream); },
        [&](const Row &row) {
            policy.free(live[row.number]);
            live.erase(row.number);
        },
        [&] { return policy.driver_calls(); });
    result.reserved = policy.peak_reserved();
    return result;
}

}  // namespace

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    const std::string kind = argv[2];
    const std::vector<Row> rows = read(argv[1]);
    const bool is_torch = kind == "torch" || kind == "expandable";
    const Result result =
        is_torch ? replay_torch(rows, kind == "expandable") : replay_yoke(rows, kind == "virtual");
    printf("{\"requested\": %lld, \"reserved\": %lld, \"calls\": [",
           static_cast<long long>(result.requested), static_cast<long long>(result.reserved));
    for (size_t i = 0; i < result.calls.size(); ++i)
        printf("%s%lld", i ? ", " : "", static_cast<long long>(result.calls[i]));
    printf("]}\n");
    return 0;
}
