// stream_backend.h: the fake backend with streams and events, which logs its calls in order.
//
// A line of the log is a word with its objects: "kernel s1", "record s1 e2", "wait s0 e2", "copy s1", "sync s1". s0
// is the default stream of a device; numbers follow the order of creation. `fake_streams.reached` answers every
// query.
#pragma once

#include "core/device/stream.h"
#include "core/memory/memory.h"
#include "tests/core/fake_backend.h"
#include "tests/core/fresh_process.h"

#include <mutex>
#include <string>
#include <vector>

namespace yoke::test {

struct FakeStreams {
    std::mutex mutex;
    std::vector<std::string> lines;
    std::atomic<int> made{0}, destroyed{0}, events{0}, events_destroyed{0};
    std::atomic<bool> reached{true}, idle{true};

    void say(std::string line)
    {
        const std::lock_guard lock(mutex);
        lines.push_back(std::move(line));
    }
    // Returns the lines since the last call.
    std::vector<std::string> take()
    {
        const std::lock_guard lock(mutex);
        return std::exchange(lines, {});
    }
};
inline FakeStreams fake_streams;

namespace stream_entries {

struct Thing {
    int number;
};
inline std::string number_of(const char *letter, const void *thing)
{
    return letter + std::to_string(thing ? static_cast<const Thing *>(thing)->number : 0);
}
inline yoke_status stream_create(void *, int32_t, void **stream)
{
    *stream = new Thing{++fake_streams.made};
    return YOKE_OK;
}
inline yoke_status stream_destroy(void *, void *stream)
{
    ++fake_streams.destroyed;
    delete static_cast<Thing *>(stream);
    return YOKE_OK;
}
inline yoke_status stream_synchronize(void *, void *stream)
{
    fake_streams.say("sync " + number_of("s", stream));
    return YOKE_OK;
}
inline yoke_status stream_query(void *, void *, int32_t *idle)
{
    *idle = fake_streams.idle;
    return YOKE_OK;
}
inline yoke_status event_create(void *, uint32_t, void **event)
{
    *event = new Thing{++fake_streams.events};
    return YOKE_OK;
}
inline yoke_status event_destroy(void *, void *event)
{
    ++fake_streams.events_destroyed;
    delete static_cast<Thing *>(event);
    return YOKE_OK;
}
inline yoke_status event_record(void *, void *event, void *stream)
{
    fake_streams.say("record " + number_of("s", stream) + " " + number_of("e", event));
    return YOKE_OK;
}
inline yoke_status event_wait(void *, void *event, void *stream)
{
    fake_streams.say("wait " + number_of("s", stream) + " " + number_of("e", event));
    return YOKE_OK;
}
inline yoke_status event_query(void *, void *, int32_t *reached)
{
    *reached = fake_streams.reached;
    return YOKE_OK;
}
inline yoke_status event_synchronize(void *, void *event)
{
    fake_streams.say("join " + number_of("e", event));
    return YOKE_OK;
}
inline yoke_status event_elapsed(void *, void *, void *, double *seconds)
{
    *seconds = 0.25;
    return YOKE_OK;
}
inline yoke_status copy(void *device, void *dst, const void *src, uint64_t bytes, int32_t kind,
                        void *stream)
{
    fake_streams.say("copy " + number_of("s", stream));
    return fake_entries::copy(device, dst, src, bytes, kind, stream);
}
inline yoke_status kernel(const yoke_launch *launch)
{
    fake_streams.say("kernel " + number_of("s", launch->stream));
    return YOKE_OK;
}

}  // namespace stream_entries

// A yoke_backend_get_fn of kind "fake".
inline yoke_status get_fake_with_streams(const yoke_host *host, const yoke_backend **out)
{
    static yoke_kernel_fn kernels[YOKE_OP_COUNT];
    for (yoke_kernel_fn &each : kernels) each = stream_entries::kernel;
    static yoke_backend table = fake_table("fake");
    fake.host = host;
    table.host_alloc = fake_entries::alloc;
    table.host_free = fake_entries::free_block;
    table.stream_create = stream_entries::stream_create;
    table.stream_destroy = stream_entries::stream_destroy;
    table.stream_synchronize = stream_entries::stream_synchronize;
    table.stream_query = stream_entries::stream_query;
    table.event_create = stream_entries::event_create;
    table.event_destroy = stream_entries::event_destroy;
    table.event_record = stream_entries::event_record;
    table.event_wait = stream_entries::event_wait;
    table.event_query = stream_entries::event_query;
    table.event_synchronize = stream_entries::event_synchronize;
    table.event_elapsed = stream_entries::event_elapsed;
    table.copy = stream_entries::copy;
    table.kernels = kernels;
    *out = &table;
    return YOKE_OK;
}

// Makes a stream current for the length of a block of code.
class OnStream {
public:
    explicit OnStream(Stream &stream) : before_(current_stream(*stream.lane.device))
    {
        set_current_stream(stream);
    }
    ~OnStream() { set_current_stream(before_); }

private:
    Ref<Stream> before_;
};

// Runs `body` in a fresh process in which devices "fake:0" and "fake:1" have streams.
template <class Body>
void in_fresh_process_with_streams(const Body &body)
{
    in_fresh_process([&] {
        fake.devices = 2;
        register_backend("fake", get_fake_with_streams);
        set_caching(
            true);  // sanitizer runs switch caching off; here the order of waiting blocks is tested
        body(*devices_of("fake")[0], *devices_of("fake")[1]);
    });
}

}  // namespace yoke::test
