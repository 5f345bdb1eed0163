// late_backend.h: devices "cuda:0" and "cuda:1" of the fake backend with streams, with a deferred engine.
//
// The engine moves no data. It writes its calls among the lines of the streams: "call all_reduce s3", "abort",
// "destroy", and "begin" and "end" of calls issued together. A call waits in `call` while `holds` is true, as NCCL
// does until ranks connect; while `hangs` is true, an abort does not end the call either. `async_error` waits while
// `holds_asking` is true. Memory of `stuck_rank` is not made in time, and the other ranks wait for it.
#pragma once

#include "tests/core/comm/threads.h"
#include "tests/core/stream_backend.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace yoke::test {

struct LateEngine {
    std::atomic<bool> holds{false}, hangs{false}, holds_asking{false};
    // Makes the device reach all fences at an abort, as with NCCL, whose kernels leave their work undone.
    std::atomic<bool> leaves_at_abort{false};
    std::atomic<int> stuck_rank{-1};
    std::atomic<yoke_status> call_status{YOKE_OK}, async_status{YOKE_OK}, init_status{YOKE_OK};
    std::atomic<int> live{0}, freed{0}, asking{0}, version{22809};
};
inline LateEngine late_engine;

namespace late_entries {

struct Comm {
    std::atomic<bool> aborted{false};
    int32_t rank = 0;
};
inline Comm &comm_of(void *comm)
{
    return *static_cast<Comm *>(comm);
}
inline yoke_status unique_id(void *id, double)
{
    memset(id, 7, YOKE_COMM_ID_BYTES);
    return YOKE_OK;
}
inline yoke_status init(const yoke_comm_member *member, void **comm)
{
    int32_t mine = member->rank, all[8] = {};
    if (yoke_status status = member->all_gather(member->user, &mine, sizeof mine, all))
        return status;
    for (int i = 0; i < member->size; ++i)
        if (all[i] != i) return fake_entries::told(YOKE_E_INTERNAL, "ranks were gathered wrong");
    if (late_engine.init_status != YOKE_OK)
        return fake_entries::told(late_engine.init_status, "the engine was told to fail");
    ++late_engine.live;
    auto *made = new Comm;
    made->rank = member->rank;
    *comm = made;
    return YOKE_OK;
}
inline yoke_status split(void *, const yoke_comm_member *member, void **comm)
{
    return init(member, comm);
}
inline yoke_status call(void *handle, const yoke_collective *record)
{
    Comm &comm = comm_of(handle);
    while (late_engine.hangs || (late_engine.holds && !comm.aborted))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (comm.aborted) {
        record->fault->kind = YOKE_COMM_FAULT_ABORTED;
        return fake_entries::told(YOKE_E_CANCELLED, "this communicator was aborted");
    }
    fake_streams.say(std::string("call ") + collective_name(record->op) + " " +
                     stream_entries::number_of("s", record->stream));
    if (late_engine.call_status == YOKE_OK) return YOKE_OK;
    return fake_entries::told(late_engine.call_status, "the engine was told to fail");
}
inline yoke_status group_begin(void *)
{
    fake_streams.say("begin");
    return YOKE_OK;
}
inline yoke_status group_end(void *)
{
    fake_streams.say("end");
    return YOKE_OK;
}
inline yoke_status abort(void *comm)
{
    comm_of(comm).aborted = true;
    if (late_engine.leaves_at_abort) fake_streams.reached = true;
    fake_streams.say("abort");
    return YOKE_OK;
}
inline void destroy(void *comm)
{
    --late_engine.live;
    fake_streams.say("destroy");
    delete static_cast<Comm *>(comm);
}
inline yoke_status mem_alloc(void *handle, uint64_t bytes, void **pointer, yoke_comm_fault *fault)
{
    if (const int stuck = late_engine.stuck_rank; stuck >= 0) {
        const bool is_mine = comm_of(handle).rank == stuck;
        fault->kind = YOKE_COMM_FAULT_LATE;
        fault->rank = is_mine ? stuck : -1;
        return fake_entries::told(
            YOKE_E_TIMEOUT, is_mine ? "the library has not returned" : "ranks are waited for");
    }
    *pointer = aligned_alloc(64, (bytes + 63) / 64 * 64);
    return YOKE_OK;
}
inline yoke_status mem_free(void *, void *pointer, uint64_t)
{
    ++late_engine.freed;
    free(pointer);
    return YOKE_OK;
}
inline void describe(void *, char *text, uint64_t capacity)
{
    snprintf(text, capacity, "a late one");
}
inline yoke_status async_error(void *, yoke_comm_fault *)
{
    ++late_engine.asking;
    while (late_engine.holds_asking) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --late_engine.asking;
    if (late_engine.async_status == YOKE_OK) return YOKE_OK;
    return fake_entries::told(late_engine.async_status, "a link is down");
}
inline int32_t version(double, char *why, uint64_t capacity)
{
    snprintf(why, capacity, "%s", late_engine.version ? "" : "libnccl.so.2 is not there");
    return late_engine.version;
}

}  // namespace late_entries

// A yoke_backend_get_fn of kind "cuda".
inline yoke_status get_fake_with_engine(const yoke_host *host, const yoke_backend **out)
{
    static const yoke_backend_comm engine = {.struct_size = sizeof(yoke_backend_comm),
                                             .abi = YOKE_BACKEND_ABI,
                                             .name = "nccl",
                                             .is_late = 1,
                                             .reserved = 0,
                                             .unique_id = late_entries::unique_id,
                                             .init = late_entries::init,
                                             .split = late_entries::split,
                                             .call = late_entries::call,
                                             .group_begin = late_entries::group_begin,
                                             .group_end = late_entries::group_end,
                                             .abort = late_entries::abort,
                                             .hang_up = nullptr,
                                             .destroy = late_entries::destroy,
                                             .mem_alloc = late_entries::mem_alloc,
                                             .mem_free = late_entries::mem_free,
                                             .describe = late_entries::describe,
                                             .async_error = late_entries::async_error,
                                             .after_fork = fake_entries::after_fork,
                                             .version = late_entries::version,
                                             .share_exit = nullptr};
    const yoke_backend *with_streams = nullptr;
    if (yoke_status status = get_fake_with_streams(host, &with_streams)) return status;
    static yoke_backend table = *with_streams;
    table.kind = "cuda";
    table.comm = &engine;
    *out = &table;
    return YOKE_OK;
}

// Runs body(groups) in a fresh process, with groups of `size` ranks on as many devices.
template <class Body>
void in_fresh_process_with_engine(const Body &body, double timeout_s = 0, int32_t size = 2)
{
    in_fresh_process([&] {
        fake.devices = 2;
        register_backend("cuda", get_fake_with_engine);
        std::vector<Device *> devices = devices_of("cuda");
        devices.resize(static_cast<size_t>(size));
        std::vector<Ref<Group>> groups = init_devices(devices, timeout_s, kCall);
        fake_streams.take();
        body(groups);
    });
}

// Returns the lines since the last call that begin with the word.
inline std::vector<std::string> lines_with(std::string_view word)
{
    std::vector<std::string> lines = fake_streams.take();
    std::erase_if(lines, [&](const std::string &each) { return !each.starts_with(word); });
    return lines;
}

// A caller may hear of a failure before the communicators are aborted.
inline void expect_lines(std::string_view word, size_t count)
{
    const Deadline deadline = Deadline::after(20);
    size_t found = 0;
    while ((found += lines_with(word).size()) < count && !deadline.has_passed())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(found, count);
}

// Waits for a value, because a separate thread releases memory.
inline void await_value(const std::atomic<int> &value, int wanted)
{
    const Deadline deadline = Deadline::after(20);
    while (value != wanted && !deadline.has_passed())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(value, wanted);
}

inline Device &device_of(const Group &group)
{
    return *devices_of("cuda")[static_cast<size_t>(group.rank())];
}

}  // namespace yoke::test
