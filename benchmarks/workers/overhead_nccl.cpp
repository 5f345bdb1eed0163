// Worker of overhead.py: cost of an all_reduce of a card's tensor for its caller, over the fakes of a driver and of
// NCCL.
//
//   overhead_nccl yoke LIBRARY     group of one rank: comparison, record and watch as in any group
//   overhead_nccl direct MODULE    same calls of the module's table: two events, two waits of streams, one call
//
// The answer is the caller's processor time. Between two bursts of calls there is a pause without measurement, so
// that the device's queue stays short; the fakes work the queue off in threads.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "core/backend/comm.h"
#include "yoke/api.h"

namespace {

double seconds(clockid_t clock)
{
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void *symbol_of(const char *file, const char *name)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, name) : nullptr;
    if (symbol) return symbol;
    fprintf(stderr, "%s: %s\n", file, dlerror());
    exit(1);
}

// Answers questions of overhead.py. `call` is timed, `settle` waits for what the calls have begun.
template <class Call, class Settle>
void serve(const char *about, const Call &call, const Settle &settle)
{
    constexpr long kBurst = 100;
    puts(about);
    fflush(stdout);
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        const char *number = strrchr(line, ' ');
        const long count = number ? std::max(1L, atol(number)) : 1;
        double worked = 0;
        for (long left = count; left > 0; left -= kBurst) {
            const double began = seconds(CLOCK_THREAD_CPUTIME_ID);
            for (long i = 0; i < std::min(left, kBurst); ++i) call();
            worked += seconds(CLOCK_THREAD_CPUTIME_ID) - began;
            settle();
        }
        printf("%.17g\n", worked / static_cast<double>(count));
        fflush(stdout);
    }
}

// ---- The library ----------------------------------------------------------------------------------------------------

const yoke_api *yoke;

void check(yoke_status status)
{
    if (!status) return;
    fprintf(stderr, "%s\n", yoke->last_error()->message);
    exit(1);
}

void serve_library(const char *library)
{
    const auto get = reinterpret_cast<decltype(&yoke_get_api)>(symbol_of(library, "yoke_get_api"));
    yoke = get(YOKE_VERSION_MAJOR, YOKE_VERSION_MINOR);
    yoke_device *device = nullptr;
    yoke_group *group = nullptr;
    yoke_tensor *tensor = nullptr;
    const int64_t shape[] = {4};
    check(yoke->device_open("cuda:0", &device));
    check(yoke->comm_init_devices(&device, 1, 0, &group));
    check(yoke->zeros(shape, 1, YOKE_F32, device, &tensor));
    serve(
        "Yoke, C, one rank over the fake NCCL",
        [&] { check(yoke->group_all_reduce(group, tensor, YOKE_REDUCE_SUM, nullptr)); },
        [&] { check(yoke->device_synchronize(device)); });
    yoke->tensor_release(tensor);
    yoke->group_release(group);
}

// ---- The table ------------------------------------------------------------------------------------------------------

const yoke_backend *table;

void need(yoke_status status, const char *call)
{
    if (!status) return;
    fprintf(stderr, "%s: status %d\n", call, status);
    exit(1);
}

void serve_table(const char *module)
{
    static const yoke_host host = {sizeof host,
                                   YOKE_BACKEND_ABI,
                                   [](yoke_status status, int64_t, const char *text) {
                                       fprintf(stderr, "%s\n", text);
                                       return status;
                                   },
                                   [](int32_t, const char *) {},
                                   [](const char *key) -> const char * { return getenv(key); },
                                   [] { return int32_t{1}; },
                                   [](void *device, uint64_t bytes, void *, uint32_t, void **out) {
                                       return table->alloc(device, bytes, out);
                                   },
                                   [](void *, void *, void *) {}};
    const auto get = reinterpret_cast<yoke_backend_get_fn>(symbol_of(module, YOKE_BACKEND_SYMBOL));
    need(get(&host, &table), "get");
    void *device = nullptr, *callers = nullptr, *stream = nullptr, *memory = nullptr,
         *events[2] = {}, *comm = nullptr;
    need(table->device_open(0, &device), "device_open");
    need(table->stream_create(device, 0, &callers), "stream_create");
    need(table->stream_create(device, 0, &stream), "stream_create");
    for (void *&each : events) need(table->event_create(device, 0, &each), "event_create");
    need(table->alloc(device, 16, &memory), "alloc");
    need(table->fill(device, memory, 0, 16, callers), "fill");
    char id[YOKE_COMM_ID_BYTES];
    need(table->comm->unique_id(id, 20), "unique_id");
    yoke_comm_fault fault{};
    fault.struct_size = sizeof fault;
    yoke_comm_member member{};
    member.struct_size = sizeof member;
    member.size = 1;
    member.device = device;
    member.id = id;
    member.address = "127.0.0.1";
    member.timeout_s = 20;
    member.fault = &fault;
    need(table->comm->init(&member, &comm), "init");
    yoke_comm_signature signature{};
    yoke_collective record{};
    record.struct_size = sizeof record;
    record.op = YOKE_COMM_ALL_REDUCE;
    record.signature = &signature;
    record.dtype = YOKE_F32;
    record.reduction = YOKE_REDUCE_SUM;
    record.peer = -1;
    record.count = 4;
    record.in = record.out = memory;
    record.stream = stream;
    record.timeout_s = 600;
    record.fault = &fault;
    const auto call = [&] {
        need(table->event_record(device, events[0], callers), "event_record");
        need(table->event_wait(device, events[0], stream), "event_wait");
        need(table->comm->call(comm, &record), "call");
        need(table->event_record(device, events[1], stream), "event_record");
        need(table->event_wait(device, events[1], callers), "event_wait");
    };
    serve("the module's table, one rank over the fake NCCL", call,
          [&] { need(table->device_synchronize(device), "synchronize"); });
}

}  // namespace

int main(int count, char **words)
{
    if (count != 3) return 2;
    if (strcmp(words[1], "yoke") == 0)
        serve_library(words[2]);
    else
        serve_table(words[2]);
    return 0;
}
