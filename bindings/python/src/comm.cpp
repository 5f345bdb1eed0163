// comm.cpp: groups of ranks; yoke/comm.py has the script's interface.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/runtime/interrupt.h"
#include "bindings/python/src/runtime/script.h"
#include "bindings/python/src/values/group.h"
#include "bindings/python/src/values/need.h"
#include "bindings/python/src/values/work.h"

#include "yoke/device.h"
#include "yoke/parallel.h"

#include <string>
#include <vector>

namespace yoke_python {

namespace {

int32_t need_rank(const py::object &value, const char *call, const char *argument)
{
    const int64_t number = need_int(value, call, argument);
    if (number != static_cast<int32_t>(number))
        require(raise_error(YOKE_E_VALUE, call, "argument '%s' is %lld; it must fit in 32 bits",
                            argument, static_cast<long long>(number)) != nullptr);
    return static_cast<int32_t>(number);
}

// Returns a number of seconds. Raises unless the number is above 0, because 0 means a default in C.
double need_seconds(const py::object &value, const char *call, const char *argument)
{
    const double seconds = need_float(value, call, argument);
    if (!(seconds > 0))
        require(raise_error(YOKE_E_VALUE, call, "argument '%s' is %R; it must be above 0 seconds",
                            argument, value.ptr()) != nullptr);
    return seconds;
}

// Runs a call without Python's lock. The call may wait, or end library threads that free Python memory.
template <class Call>
yoke_status released(Call &&call)
{
    const ReleaseGil release;
    return call();
}

// ---- Collectives -------------------------------------------------------------------------------------------------

struct Collective {
    yoke_group *group;
    yoke_tensor *t, *out;
    int32_t peer, reduction;
    yoke_dtype reduce_dtype;
};

enum class Takes { kNothing, kTensor, kTensorOrNone };

// Kind of a collective: arguments, and the C call.
struct CollectiveKind {
    const char *name;
    Takes out, t;
    const char *peer;  // the argument that is a rank, or null
    yoke_status (*begin)(const Collective &, yoke_work **);
};

const CollectiveKind kCollectives[] = {
    {"all_reduce", Takes::kNothing, Takes::kTensor, nullptr,
     [](const Collective &c, yoke_work **work) {
         return yoke_group_all_reduce_in(c.group, c.t, c.reduction, c.reduce_dtype, work);
     }},
    {"reduce", Takes::kNothing, Takes::kTensor, "root",
     [](const Collective &c, yoke_work **work) {
         return yoke_group_reduce(c.group, c.t, c.peer, c.reduction, work);
     }},
    {"broadcast", Takes::kNothing, Takes::kTensor, "root",
     [](const Collective &c, yoke_work **work) {
         return yoke_group_broadcast(c.group, c.t, c.peer, work);
     }},
    {"all_gather", Takes::kTensor, Takes::kTensor, nullptr,
     [](const Collective &c, yoke_work **work) {
         return yoke_group_all_gather(c.group, c.out, c.t, work);
     }},
    {"gather", Takes::kTensorOrNone, Takes::kTensor, "root",
     [](const Collective &c, yoke_work **work) {
         return yoke_group_gather(c.group, c.out, c.t, c.peer, work);
     }},
    {"scatter", Takes::kTensor, Takes::kTensorOrNone, "root",
     [](const Collective &c, yoke_work **work) {
         return yoke_group_scatter(c.group, c.out, c.t, c.peer, work);
     }},
    {"reduce_scatter", Takes::kTensor, Takes::kTensor, nullptr,
     [](const Collective &c, yoke_work **work) {
         return yoke_group_reduce_scatter(c.group, c.out, c.t, c.reduction, work);
     }},
    {"all_to_all", Takes::kTensor, Takes::kTensor, nullptr,
     [](const Collective &c, yoke_work **work) {
         return yoke_group_all_to_all(c.group, c.out, c.t, work);
     }},
    {"send", Takes::kNothing, Takes::kTensor, "dst",
     [](const Collective &c, yoke_work **work) {
         return yoke_group_send(c.group, c.t, c.peer, work);
     }},
    {"recv", Takes::kNothing, Takes::kTensor, "src",
     [](const Collective &c, yoke_work **work) {
         return yoke_group_recv(c.group, c.t, c.peer, work);
     }},
    {"barrier", Takes::kNothing, Takes::kNothing, nullptr,
     [](const Collective &c, yoke_work **work) { return yoke_group_barrier(c.group, work); }},
};

const CollectiveKind &kind_of(const char *name)
{
    for (const CollectiveKind &kind : kCollectives)
        if (strcmp(kind.name, name) == 0) return kind;
    throw py::key_error(name);  // yoke/comm.py gives none such
}

yoke_tensor *tensor_for(Takes takes, const py::object &value, const char *call,
                        const char *argument)
{
    if (takes == Takes::kNothing || (takes == Takes::kTensorOrNone && value.is_none()))
        return nullptr;
    return need_tensor(value, call, argument);
}

// Returns whether the call may wait until all ranks have a communicator on their devices: whether the tensor is on a
// card.
bool may_connect(yoke_tensor *tensor)
{
    return tensor && strcmp(yoke_device_kind(yoke_tensor_device(tensor)), "cpu") != 0;
}

// Begins a collective by its name, from yoke/comm.py; `reduction` is a YOKE_REDUCE_* number. Returns the work.
// Returns None if no work is wanted and the tensors are on a card: the current stream is then ordered after the call.
py::object run(const Group &group, const char *name, const py::object &t, const py::object &out,
               const py::object &peer, int32_t reduction, const py::object &reduce_dtype,
               bool wants_work)
{
    const CollectiveKind &kind = kind_of(name);
    Collective given{group.handle(), nullptr, nullptr, 0, reduction, YOKE_NONE};
    require(to_dtype(reduce_dtype.ptr(), {name, "reduce_dtype"}, &given.reduce_dtype));
    given.out = tensor_for(kind.out, out, name, "out");
    given.t = tensor_for(kind.t, t, name, "t");
    if (kind.peer) given.peer = need_rank(peer, name, kind.peer);
    yoke_work *work = nullptr;
    const ScriptLine line;
    const bool is_on_card = may_connect(given.t) || may_connect(given.out);
    const auto begin = [&] {
        return kind.begin(given, wants_work || !is_on_card ? &work : nullptr);
    };
    if (is_on_card)
        wait_in(begin);
    else
        check(released(begin));
    return work ? object_of(work) : py::none();
}

// ---- Other calls of a group --------------------------------------------------------------------------------------

py::object made(yoke_group *group)
{
    return py::cast(new Group(group), py::return_value_policy::take_ownership);
}

void monitored_barrier(const Group &group, const py::object &timeout)
{
    const double seconds = need_float(timeout, "monitored_barrier", "timeout");
    const ScriptLine line;
    wait_in([&] { return yoke_group_monitored_barrier(group.handle(), seconds); });
}

py::object split(const Group &group, const py::object &color, const py::object &key)
{
    const int32_t mine = need_rank(color, "split", "color");
    const int64_t place = need_int(key, "split", "key");
    yoke_group *part = nullptr;
    const ScriptLine line;
    wait_in([&] { return yoke_group_split(group.handle(), mine, place, &part); });
    return part ? made(part) : py::none();
}

py::object shrink(const Group &group, const py::object &timeout)
{
    const double seconds = need_seconds(timeout, "shrink", "timeout");
    yoke_group *smaller = nullptr;
    const ScriptLine line;
    wait_in([&] { return yoke_group_shrink(group.handle(), seconds, &smaller); });
    return made(smaller);
}

py::object empty(const Group &group, const py::object &shape, const py::object &dtype,
                 const py::object &device)
{
    std::vector<int64_t> sizes;
    require(to_ints(shape.ptr(), {"empty", "shape"}, &sizes));
    yoke_dtype wanted = YOKE_NONE;
    require(to_dtype(dtype.ptr(), {"empty", "dtype"}, &wanted));
    yoke_device *place = nullptr;
    if (!device.is_none()) require(to_device(device.ptr(), {"empty", "device"}, &place));
    yoke_tensor *tensor = nullptr;
    const ScriptLine line;
    wait_in([&] {
        return yoke_group_empty_on(group.handle(), sizes.data(), static_cast<int64_t>(sizes.size()),
                                   wanted ? wanted : YOKE_F32, place, &tensor);
    });
    return taken(wrap_tensor(tensor));
}

void abort_group(const Group &group, const py::object &reason)
{
    const char *text = need_text(reason, "abort", "reason");
    check(released([&] { return yoke_group_abort(group.handle(), text); }));
}

void note_refused(const Group &group, const py::object &call, const py::object &why)
{
    const char *named = need_text(call, "note_refused", "call");
    const char *text = need_text(why, "note_refused", "why");
    check(released([&] { return yoke_group_note_refused(group.handle(), named, text); }));
}

void dump(const Group &group, const py::object &path)
{
    const py::bytes file = need_path(path, "dump", "path");
    const char *text = PyBytes_AS_STRING(file.ptr());
    check(released([&] { return yoke_group_dump(group.handle(), text); }));
}

// ---- The beginning -----------------------------------------------------------------------------------------------

// Host program's store for an init: a HostStore of yoke/_host_store.py. Its calls return a status and a text, the
// value or the problem.
class StoreCalls {
public:
    explicit StoreCalls(const py::object &store) : store_(store)
    {
        functions_.struct_size = sizeof functions_;
        functions_.user = this;
        functions_.set = [](void *user, const char *key, const void *data, int64_t bytes) {
            const auto *text = static_cast<const char *>(data);
            return static_cast<StoreCalls *>(user)->call([&](StoreCalls &self) {
                return self.store_.attr("set")(key, py::str(text, static_cast<size_t>(bytes)));
            });
        };
        functions_.get = [](void *user, const char *key, double timeout, void *data,
                            int64_t capacity, int64_t *bytes) {
            auto &self = *static_cast<StoreCalls *>(user);
            const yoke_status status =
                self.call([&](StoreCalls &s) { return s.store_.attr("get")(key, timeout); });
            if (status != YOKE_OK) return status;
            *bytes = static_cast<int64_t>(self.text_.size());
            self.text_.copy(static_cast<char *>(data), static_cast<size_t>(capacity));
            return status;
        };
        functions_.problem = [](void *user) {
            return static_cast<StoreCalls *>(user)->text_.c_str();
        };
    }
    const yoke_store_functions *functions() const
    {
        return store_.is_none() ? nullptr : &functions_;
    }

private:
    template <class Call>
    yoke_status call(Call &&call) noexcept
    {
        const py::gil_scoped_acquire held;
        try {
            const auto told = py::cast<py::tuple>(call(*this));
            text_ = py::cast<std::string>(told[1]);
            constexpr yoke_status kEnds[] = {YOKE_OK, YOKE_E_TIMEOUT, YOKE_E_COMM};
            return kEnds[py::cast<size_t>(told[0])];
        } catch (const std::exception &error) {
            text_ = Waiting::keep(error);
            return YOKE_E_COMM;
        }
    }

    const py::object &store_;
    yoke_store_functions functions_{};
    std::string text_;
};

py::object init(const py::object &backend, const py::object &init_method, const py::object &rank,
                const py::object &world_size, const py::object &timeout,
                const py::object &init_timeout, const py::object &store, const py::object &device)
{
    const StoreCalls calls(store);
    yoke_comm_options options{};
    options.struct_size = sizeof options;
    options.backend = need_text(backend, "init", "backend");
    options.init_method = need_text(init_method, "init", "init_method");
    if (rank.is_none() != world_size.is_none())
        require(raise_error(YOKE_E_VALUE, "init",
                            "argument 'rank' is %R and 'world_size' is %R; give both, or neither",
                            rank.ptr(), world_size.ptr()) != nullptr);
    if (!rank.is_none()) {
        options.has_rank = 1;
        options.rank = need_rank(rank, "init", "rank");
        options.world_size = need_rank(world_size, "init", "world_size");
    }
    options.timeout = need_seconds(timeout, "init", "timeout");
    options.init_timeout = need_seconds(init_timeout, "init", "init_timeout");
    options.store = calls.functions();
    if (!device.is_none()) require(to_device(device.ptr(), {"init", "device"}, &options.device));
    yoke_group *group = nullptr;
    wait_in([&] { return yoke_comm_init(&options, &group); });
    return made(group);
}

py::list init_threads(const py::object &size, const py::object &timeout)
{
    const int32_t count = need_rank(size, "init_all", "size");
    const double seconds = need_seconds(timeout, "init_all", "timeout");
    if (count < 1 || count > YOKE_MAX_RANKS)
        require(raise_error(YOKE_E_VALUE, "init_all", "argument 'size' is %d; it takes 1 to %d",
                            static_cast<int>(count), YOKE_MAX_RANKS) != nullptr);
    std::vector<yoke_group *> groups(static_cast<size_t>(count));
    wait_in([&] { return yoke_comm_init_threads(count, seconds, groups.data()); });
    py::list all;
    for (yoke_group *group : groups) all.append(made(group));
    return all;
}

py::list init_devices(const py::list &devices, const py::object &timeout)
{
    const double seconds = need_seconds(timeout, "init_all", "timeout");
    std::vector<yoke_device *> all;
    for (const py::handle each : devices)
        require(to_device(each.ptr(), {"init_all", "devices"}, &all.emplace_back()));
    std::vector<yoke_group *> groups(all.size());
    wait_in([&] {
        return yoke_comm_init_devices(all.data(), static_cast<int32_t>(all.size()), seconds,
                                      groups.data());
    });
    py::list made_groups;
    for (yoke_group *group : groups) made_groups.append(made(group));
    return made_groups;
}

}  // namespace

void bind_comm(py::module_ &module)
{
    bound_class<Group>(module, "_Group")
        .def("rank", [](const Group &group) { return yoke_group_rank(group.handle()); })
        .def("size", [](const Group &group) { return yoke_group_size(group.handle()); })
        .def("local_rank", [](const Group &group) { return yoke_group_local_rank(group.handle()); })
        .def("describe",
             [](const Group &group) { return text_of(yoke_group_describe(group.handle())); })
        .def("run", run, py::arg("name"), py::arg("t"), py::arg("out"), py::arg("peer"),
             py::arg("reduction"), py::arg("reduce_dtype"), py::arg("wants_work"))
        .def("monitored_barrier", monitored_barrier, py::arg("timeout"))
        .def("split", split, py::arg("color"), py::arg("key"))
        .def("shrink", shrink, py::arg("timeout"))
        .def("empty", empty, py::arg("shape"), py::arg("dtype"), py::arg("device"))
        .def("abort", abort_group, py::arg("reason"))
        .def("note_refused", note_refused, py::arg("call"), py::arg("why"))
        .def("dump", dump, py::arg("path"));
    module.def("_comm_init", init, py::arg("backend"), py::arg("init_method"), py::arg("rank"),
               py::arg("world_size"), py::arg("timeout"), py::arg("init_timeout"), py::arg("store"),
               py::arg("device"));
    module.def("_comm_init_threads", init_threads, py::arg("size"), py::arg("timeout"));
    module.def("_comm_init_devices", init_devices, py::arg("devices"), py::arg("timeout"));
    module.def("_comm_group", [] {
        yoke_group *group = nullptr;
        check(yoke_comm_group(&group));
        return made(group);
    });
    module.def("_comm_tell_lines", [](const py::str &file) { require(init_script(file.ptr())); });
    module.def("_comm_finalize", [] { check(released(yoke_comm_finalize)); });
    module.def("_comm_note_raised", [](const py::object &what) {
        check(yoke_comm_note_raised(need_text(what, "_comm_note_raised", "what")));
    });
    module.def("_comm_coalesce_begin", [] { check(yoke_comm_coalesce_begin()); });
    module.def("_comm_coalesce_end", [] { check(released(yoke_comm_coalesce_end)); });
    module.def("_comm_coalesce_drop", [] { check(released(yoke_comm_coalesce_drop)); });
}

}  // namespace yoke_python
