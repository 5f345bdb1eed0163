#include "yoke/comm.h"

#include "capi/src/guard.h"
#include "capi/src/host_store.h"
#include "capi/src/structs.h"
#include "core/base/interrupt.h"
#include "core/comm/coalesce.h"
#include "core/comm/ending.h"
#include "core/comm/init.h"
#include "core/comm/local_groups.h"
#include "core/hang/hang.h"
#include "core/parallel/param_writes.h"

#include <optional>

using namespace yoke;
using namespace yoke::capi;

namespace {

// Runs the collective that `make` returns; every function below is a collective. With `work`, begins the collective
// and puts its work there; else waits for its end.
template <typename Make>
yoke_status collective(const char *call, yoke_group *group, yoke_work **work, const Make &make,
                       Refused what = Refused::kCollective)
{
    return guard(call, [&] {
        if (work) *work = nullptr;
        const Ref<Group> held = need_ref(group, call, "group");
        Collective given = held->or_refuse(
            [&] {
                Collective made = make();
                held->issuer().check_coalesced(made.name(), Coalescing::is_open());
                return made;
            },
            what);
        std::optional<Interruptible> waits;  // the work of an interrupted call goes on
        const Device *const device = given.device();
        const bool may_connect = device && !device->host;
        if (!work || may_connect) waits.emplace(said_name(call));
        Ref<Work> begun = held->run(std::move(given), work != nullptr);
        if (work) *work = hand_out<yoke_work>(std::move(begun));
    });
}

// Runs a collective with a single tensor, both read and written.
yoke_status in_place(const char *call, int32_t op, yoke_group *group, yoke_tensor *t,
                     int32_t reduction, int32_t root, yoke_work **work)
{
    return collective(call, group, work, [&] {
        const Tensor tensor = optional_ref(t, call, "t");
        return Collective{op, reduction, root, tensor, tensor};
    });
}

yoke_status between(const char *call, int32_t op, yoke_group *group, yoke_tensor *out,
                    yoke_tensor *t, int32_t reduction, int32_t root, yoke_work **work)
{
    const auto make = [&] {
        return Collective{op, reduction, root, optional_ref(t, call, "t"),
                          optional_ref(out, call, "out")};
    };
    const bool is_message = op == YOKE_COMM_SEND || op == YOKE_COMM_RECV;
    return collective(call, group, work, make,
                      is_message ? Refused::kMessage : Refused::kCollective);
}

yoke_status empty(const char *call, yoke_group *group, const int64_t *shape, int64_t ndim,
                  yoke_dtype dtype, yoke_device *device, yoke_tensor **out)
{
    return guard(call, [&] {
        yoke_tensor *&place = need_out(out, call);
        const Ref<Group> held = need_ref(group, call, "group");
        const IntList sizes = held->or_refuse([&] {
            check_dtype(dtype, said_name(call));
            return need_shape(shape, ndim, call);
        });
        const Interruptible waits(said_name(call));
        place = hand_out<yoke_tensor>(waits.finished(
            held->empty(sizes, dtype, device ? need(device, call, "device") : open_device("cpu"))));
    });
}

}  // namespace

// ---- Making one -------------------------------------------------------------------------------------------------

yoke_status yoke_comm_init(const yoke_comm_options *options, yoke_group **out)
{
    constexpr const char *call = "yoke_comm_init";
    return guard(call, [&] {
        yoke_group *&place = need_out(out, call);
        yoke_comm_options given{};
        if (options) given = read_struct(options, call, "options");
        InitOptions how;
        if (given.has_rank) how.arguments.rank = given.rank, how.arguments.size = given.world_size;
        if (given.backend) how.backend = given.backend;
        if (given.init_method) how.arguments.init_method = given.init_method;
        if (given.timeout != 0) how.timeout_s = given.timeout;
        if (given.init_timeout != 0) how.init_timeout_s = given.init_timeout;
        std::optional<StoreOfFunctions> store;
        if (given.store) how.host_store = &store.emplace(given.store, call);
        if (given.device) how.device = &need(given.device, call, "options.device");
        constexpr const char *said = "comm.init";
        const Interruptible waits(said);
        place = hand_out<yoke_group>(waits.finished(init_group(how, said)));
    });
}

yoke_status yoke_comm_init_threads(int32_t size, double timeout, yoke_group **groups)
{
    constexpr const char *call = "yoke_comm_init_threads";
    return guard(call, [&] {
        yoke_group **places = &need(groups, call, "groups");
        for (int32_t i = 0; i < size && i < YOKE_MAX_RANKS; ++i) places[i] = nullptr;
        const Interruptible waits(said_name(call));
        std::vector<Ref<Group>> made = waits.finished(init_threads(size, timeout, said_name(call)));
        for (Ref<Group> &each : made) *places++ = hand_out<yoke_group>(std::move(each));
    });
}

yoke_status yoke_comm_init_devices(yoke_device *const *devices, int32_t count, double timeout,
                                   yoke_group **groups)
{
    constexpr const char *call = "yoke_comm_init_devices", *said = "init_all";
    return guard(call, [&] {
        yoke_group **places = count > 0 ? &need(groups, call, "groups") : nullptr;
        std::vector<Device *> all;
        for (int32_t i = 0; i < count; ++i) {
            places[i] = nullptr;
            all.push_back(&need((&need(devices, call, "devices"))[i], call, "devices"));
        }
        const Interruptible waits(said);
        std::vector<Ref<Group>> made = waits.finished(init_devices(all, timeout, said));
        for (Ref<Group> &each : made) *places++ = hand_out<yoke_group>(std::move(each));
    });
}

yoke_status yoke_comm_group(yoke_group **out)
{
    constexpr const char *call = "yoke_comm_group";
    return guard(call, [&] {
        yoke_group *&place = need_out(out, call);
        place = hand_out<yoke_group>(default_group(short_name(call)));
    });
}

yoke_status yoke_comm_finalize(void)
{
    return guard("yoke_comm_finalize", [] { finalize_groups(); });
}

yoke_status yoke_comm_note_raised(const char *what)
{
    return guard("yoke_comm_note_raised", [&] { note_raised(what ? what : ""); });
}

yoke_group *yoke_group_retain(yoke_group *group)
{
    return retain_handle(group, "yoke_group_retain");
}

void yoke_group_release(yoke_group *group)
{
    release_handle(group, "yoke_group_release");
}

// ---- Properties -------------------------------------------------------------------------------------------------

int32_t yoke_group_rank(yoke_group *group)
{
    constexpr const char *call = "yoke_group_rank";
    return guard_value(call, int32_t{-1}, [&] { return need_ref(group, call, "group")->rank(); });
}

int32_t yoke_group_size(yoke_group *group)
{
    constexpr const char *call = "yoke_group_size";
    return guard_value(call, int32_t{-1}, [&] { return need_ref(group, call, "group")->size(); });
}

int32_t yoke_group_local_rank(yoke_group *group)
{
    constexpr const char *call = "yoke_group_local_rank";
    return guard_value(call, int32_t{-1},
                       [&] { return need_ref(group, call, "group")->local_rank(); });
}

const char *yoke_group_describe(yoke_group *group)
{
    constexpr const char *call = "yoke_group_describe";
    return guard_value(call, "", [&] {
        thread_local std::string text;
        text = need_ref(group, call, "group")->describe();
        return text.c_str();
    });
}

yoke_status yoke_group_split(yoke_group *group, int32_t color, int64_t key, yoke_group **out)
{
    constexpr const char *call = "yoke_group_split";
    return guard(call, [&] {
        yoke_group *&place = need_out(out, call);
        const Interruptible waits(short_name(call));
        Ref<Group> part = waits.finished(need_ref(group, call, "group")->split(color, key));
        if (part.present()) place = hand_out<yoke_group>(std::move(part));
    });
}

yoke_status yoke_group_shrink(yoke_group *group, double timeout, yoke_group **out)
{
    constexpr const char *call = "yoke_group_shrink";
    return guard(call, [&] {
        yoke_group *&place = need_out(out, call);
        const Interruptible waits(short_name(call));
        const Ref<Group> held = need_ref(group, call, "group");
        place = hand_out<yoke_group>(waits.finished(shrink_group(*held, timeout)));
        note_told_of_all(*held, false);
    });
}

yoke_status yoke_group_empty(yoke_group *group, const int64_t *shape, int64_t ndim,
                             yoke_dtype dtype, yoke_tensor **out)
{
    return empty("yoke_group_empty", group, shape, ndim, dtype, nullptr, out);
}

yoke_status yoke_group_empty_on(yoke_group *group, const int64_t *shape, int64_t ndim,
                                yoke_dtype dtype, yoke_device *device, yoke_tensor **out)
{
    return empty("yoke_group_empty_on", group, shape, ndim, dtype, device, out);
}

yoke_status yoke_group_note_refused(yoke_group *group, const char *call, const char *why)
{
    constexpr const char *self = "yoke_group_note_refused";
    return guard(self, [&] {
        const std::string_view named = &need(call, self, "call");
        const Refused what = named == "send" || named == "recv" ? Refused::kMessage
                             : named == "monitored_barrier"     ? Refused::kBarrier
                             : named == "shrink"                ? Refused::kShrink
                                                                : Refused::kCollective;
        need_ref(group, self, "group")->note_refused(&need(why, self, "why"), what);
    });
}

yoke_status yoke_group_abort(yoke_group *group, const char *reason)
{
    constexpr const char *call = "yoke_group_abort";
    return guard(call, [&] { need_ref(group, call, "group")->abort(reason ? reason : ""); });
}

// ---- Collectives ------------------------------------------------------------------------------------------------

yoke_status yoke_group_all_reduce(yoke_group *group, yoke_tensor *t, int32_t reduction,
                                  yoke_work **work)
{
    return in_place("yoke_group_all_reduce", YOKE_COMM_ALL_REDUCE, group, t, reduction, -1, work);
}

yoke_status yoke_group_all_reduce_in(yoke_group *group, yoke_tensor *t, int32_t reduction,
                                     yoke_dtype reduce_dtype, yoke_work **work)
{
    constexpr const char *call = "yoke_group_all_reduce_in";
    return collective(call, group, work, [&] {
        const Tensor tensor = optional_ref(t, call, "t");
        Collective made{YOKE_COMM_ALL_REDUCE, reduction, -1, tensor, tensor};
        made.flags = flags_of_reduce_dtype(reduce_dtype, "all_reduce");
        return made;
    });
}

yoke_status yoke_group_reduce(yoke_group *group, yoke_tensor *t, int32_t root, int32_t reduction,
                              yoke_work **work)
{
    return in_place("yoke_group_reduce", YOKE_COMM_REDUCE, group, t, reduction, root, work);
}

yoke_status yoke_group_broadcast(yoke_group *group, yoke_tensor *t, int32_t root, yoke_work **work)
{
    return in_place("yoke_group_broadcast", YOKE_COMM_BROADCAST, group, t, -1, root, work);
}

yoke_status yoke_group_all_gather(yoke_group *group, yoke_tensor *out, yoke_tensor *t,
                                  yoke_work **work)
{
    return between("yoke_group_all_gather", YOKE_COMM_ALL_GATHER, group, out, t, -1, -1, work);
}

yoke_status yoke_group_gather(yoke_group *group, yoke_tensor *out, yoke_tensor *t, int32_t root,
                              yoke_work **work)
{
    return between("yoke_group_gather", YOKE_COMM_GATHER, group, out, t, -1, root, work);
}

yoke_status yoke_group_scatter(yoke_group *group, yoke_tensor *out, yoke_tensor *t, int32_t root,
                               yoke_work **work)
{
    return between("yoke_group_scatter", YOKE_COMM_SCATTER, group, out, t, -1, root, work);
}

yoke_status yoke_group_reduce_scatter(yoke_group *group, yoke_tensor *out, yoke_tensor *t,
                                      int32_t reduction, yoke_work **work)
{
    return between("yoke_group_reduce_scatter", YOKE_COMM_REDUCE_SCATTER, group, out, t, reduction,
                   -1, work);
}

yoke_status yoke_group_all_to_all(yoke_group *group, yoke_tensor *out, yoke_tensor *t,
                                  yoke_work **work)
{
    return between("yoke_group_all_to_all", YOKE_COMM_ALL_TO_ALL, group, out, t, -1, -1, work);
}

yoke_status yoke_group_send(yoke_group *group, yoke_tensor *t, int32_t dst, yoke_work **work)
{
    return between("yoke_group_send", YOKE_COMM_SEND, group, nullptr, t, -1, dst, work);
}

yoke_status yoke_group_recv(yoke_group *group, yoke_tensor *t, int32_t src, yoke_work **work)
{
    return between("yoke_group_recv", YOKE_COMM_RECV, group, t, nullptr, -1, src, work);
}

yoke_status yoke_group_barrier(yoke_group *group, yoke_work **work)
{
    return collective("yoke_group_barrier", group, work, [] { return Collective(); });
}

yoke_status yoke_group_monitored_barrier(yoke_group *group, double timeout)
{
    constexpr const char *call = "yoke_group_monitored_barrier";
    return guard(call, [&] {
        const Interruptible waits(said_name(call));
        need_ref(group, call, "group")->monitored_barrier(timeout);
        waits.check();
    });
}

// ---- Several at once --------------------------------------------------------------------------------------------

yoke_status yoke_comm_coalesce_begin(void)
{
    return guard("yoke_comm_coalesce_begin", [] { Coalescing::begin(); });
}

yoke_status yoke_comm_coalesce_end(void)
{
    return guard("yoke_comm_coalesce_end", [] {
        const Interruptible waits("coalesce");
        Coalescing::end("coalesce");
    });
}

yoke_status yoke_comm_coalesce_drop(void)
{
    return guard("yoke_comm_coalesce_drop", [] { Coalescing::drop("coalesce"); });
}

// ---- State of a group -------------------------------------------------------------------------------------------

yoke_status yoke_group_dump(yoke_group *group, const char *path)
{
    constexpr const char *call = "yoke_group_dump";
    return guard(call, [&] { need_ref(group, call, "group")->dump(&need(path, call, "path")); });
}

yoke_status yoke_comm_hang(const char *const *paths, int64_t count, yoke_state **out)
{
    constexpr const char *call = "yoke_comm_hang";
    return guard(call, [&] {
        yoke_state *&place = need_out(out, call);
        std::vector<std::string> files;
        for (int64_t i = 0; i < count; ++i)
            files.emplace_back(&need((&need(paths, call, "paths"))[i], call, "paths"));
        place = hand_out<yoke_state>(hang_report(files, said_name(call)));
    });
}
