// comm.cpp: groups of ranks; yoke/comm.py gives them their face.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/parallel.h"
#include "bindings/python/src/runtime/interrupt.h"
#include "bindings/python/src/runtime/script.h"
#include "bindings/python/src/values/need.h"
#include "bindings/python/src/values/work.h"

#include "yoke/parallel.h"

#include <string>
#include <vector>

namespace yoke_python {
namespace {

yoke_tensor *tensor_or_none(const py::object &value, const char *call, const char *argument)
{
    return value.is_none() ? nullptr : need_tensor(value, call, argument);
}

int32_t need_rank(const py::object &value, const char *call, const char *argument)
{
    const int64_t number = need_int(value, call, argument);
    if (number != static_cast<int32_t>(number))
        require(raise_error(YOKE_E_VALUE, call, "argument '%s' is %lld, which no rank has",
                            argument, static_cast<long long>(number)) != nullptr);
    return static_cast<int32_t>(number);
}

// More than 0, which would stand for a default where C has it.
double need_seconds(const py::object &value, const char *call, const char *argument)
{
    const double seconds = need_float(value, call, argument);
    if (!(seconds > 0))
        require(raise_error(YOKE_E_VALUE, call,
                            "argument '%s' is %R; it takes seconds, more than 0", argument,
                            value.ptr()) != nullptr);
    return seconds;
}

// A call that may wait, or end what threads of the library let go of in Python's memory.
template <class Call>
yoke_status released(Call &&call)
{
    const ReleaseGil release;
    return call();
}

class Group : public Bound {
public:
    explicit Group(yoke_group *handle) : handle_(handle) {}
    ~Group()
    {
        const ReleaseGil release;  // it waits for what was begun
        yoke_group_release(handle_);
    }
    Group(const Group &) = delete;
    Group &operator=(const Group &) = delete;

    int32_t rank() const { return yoke_group_rank(handle_); }
    int32_t size() const { return yoke_group_size(handle_); }
    int32_t local_rank() const { return yoke_group_local_rank(handle_); }
    py::object describe() const { return text_of(yoke_group_describe(handle_)); }

    // The work of a call, whose wait hears Ctrl-C.
    template <class Call>
    py::object begin(Call &&call) const
    {
        yoke_work *work = nullptr;
        yoke_status status = YOKE_OK;
        const ScriptLine line;
        {
            const ReleaseGil release;
            status = call(&work);
        }
        check(status);
        return object_of(work);
    }

    py::object all_reduce(const py::object &t, int32_t op) const
    {
        yoke_tensor *tensor = need_tensor(t, "all_reduce", "t");
        return begin(
            [&](yoke_work **work) { return yoke_group_all_reduce(handle_, tensor, op, work); });
    }
    py::object reduce(const py::object &t, const py::object &root, int32_t op) const
    {
        yoke_tensor *tensor = need_tensor(t, "reduce", "t");
        const int32_t rank = need_rank(root, "reduce", "root");
        return begin(
            [&](yoke_work **work) { return yoke_group_reduce(handle_, tensor, rank, op, work); });
    }
    py::object broadcast(const py::object &t, const py::object &root) const
    {
        yoke_tensor *tensor = need_tensor(t, "broadcast", "t");
        const int32_t rank = need_rank(root, "broadcast", "root");
        return begin(
            [&](yoke_work **work) { return yoke_group_broadcast(handle_, tensor, rank, work); });
    }
    py::object all_gather(const py::object &out, const py::object &t) const
    {
        yoke_tensor *to = need_tensor(out, "all_gather", "out");
        yoke_tensor *from = need_tensor(t, "all_gather", "t");
        return begin(
            [&](yoke_work **work) { return yoke_group_all_gather(handle_, to, from, work); });
    }
    py::object gather(const py::object &out, const py::object &t, const py::object &root) const
    {
        yoke_tensor *to = tensor_or_none(out, "gather", "out");
        yoke_tensor *from = need_tensor(t, "gather", "t");
        const int32_t rank = need_rank(root, "gather", "root");
        return begin(
            [&](yoke_work **work) { return yoke_group_gather(handle_, to, from, rank, work); });
    }
    py::object scatter(const py::object &out, const py::object &t, const py::object &root) const
    {
        yoke_tensor *to = need_tensor(out, "scatter", "out");
        yoke_tensor *from = tensor_or_none(t, "scatter", "t");
        const int32_t rank = need_rank(root, "scatter", "root");
        return begin(
            [&](yoke_work **work) { return yoke_group_scatter(handle_, to, from, rank, work); });
    }
    py::object reduce_scatter(const py::object &out, const py::object &t, int32_t op) const
    {
        yoke_tensor *to = need_tensor(out, "reduce_scatter", "out");
        yoke_tensor *from = need_tensor(t, "reduce_scatter", "t");
        return begin([&](yoke_work **work) {
            return yoke_group_reduce_scatter(handle_, to, from, op, work);
        });
    }
    py::object all_to_all(const py::object &out, const py::object &t) const
    {
        yoke_tensor *to = need_tensor(out, "all_to_all", "out");
        yoke_tensor *from = need_tensor(t, "all_to_all", "t");
        return begin(
            [&](yoke_work **work) { return yoke_group_all_to_all(handle_, to, from, work); });
    }
    py::object send(const py::object &t, const py::object &dst) const
    {
        yoke_tensor *tensor = need_tensor(t, "send", "t");
        const int32_t rank = need_rank(dst, "send", "dst");
        return begin(
            [&](yoke_work **work) { return yoke_group_send(handle_, tensor, rank, work); });
    }
    py::object recv(const py::object &t, const py::object &src) const
    {
        yoke_tensor *tensor = need_tensor(t, "recv", "t");
        const int32_t rank = need_rank(src, "recv", "src");
        return begin(
            [&](yoke_work **work) { return yoke_group_recv(handle_, tensor, rank, work); });
    }
    py::object barrier() const
    {
        return begin([&](yoke_work **work) { return yoke_group_barrier(handle_, work); });
    }

    void monitored_barrier(const py::object &timeout) const;
    py::object split(const py::object &color, const py::object &key) const;
    py::object shrink(const py::object &timeout) const;
    py::object empty(const py::object &shape, const py::object &dtype) const;
    void abort(const py::object &reason) const
    {
        const char *text = need_text(reason, "abort", "reason");
        check(released([&] { return yoke_group_abort(handle_, text); }));
    }
    void note_refused(const py::object &call, const py::object &why) const
    {
        const char *named = need_text(call, "note_refused", "call");
        const char *text = need_text(why, "note_refused", "why");
        check(released([&] { return yoke_group_note_refused(handle_, named, text); }));
    }
    void dump(const py::object &path) const;
    void join_begin() const { check(yoke_group_join_begin(handle_)); }
    py::object join_end(const py::object &mine) const { return end_join(handle_, mine); }
    py::object regroup(const py::object &reducer, const py::object &mine) const
    {
        return regroup_reducer(handle_, reducer, mine);
    }
    void regroup_sampler(const py::object &sampler) const
    {
        yoke_python::regroup_sampler(handle_, sampler);
    }
    py::object reducer(const py::object &params, const py::object &names, const py::object &buffers,
                       const py::object &buffer_names, const py::object &bucket_mb,
                       const py::object &compression, const py::object &hook) const
    {
        return make_reducer(handle_,
                            {params, names, buffers, buffer_names, bucket_mb, compression, hook});
    }

private:
    yoke_group *handle_;
};

py::object made(yoke_group *group)
{
    return py::cast(new Group(group), py::return_value_policy::take_ownership);
}

void Group::monitored_barrier(const py::object &timeout) const
{
    const double seconds = need_float(timeout, "monitored_barrier", "timeout");
    const ScriptLine line;
    wait_in([&] { return yoke_group_monitored_barrier(handle_, seconds); });
}

py::object Group::split(const py::object &color, const py::object &key) const
{
    const int32_t mine = need_rank(color, "split", "color");
    const int64_t place = need_int(key, "split", "key");
    yoke_group *part = nullptr;
    const ScriptLine line;
    wait_in([&] { return yoke_group_split(handle_, mine, place, &part); });
    return part ? made(part) : py::none();
}

py::object Group::shrink(const py::object &timeout) const
{
    const double seconds = need_seconds(timeout, "shrink", "timeout");
    yoke_group *smaller = nullptr;
    const ScriptLine line;
    wait_in([&] { return yoke_group_shrink(handle_, seconds, &smaller); });
    return made(smaller);
}

py::object Group::empty(const py::object &shape, const py::object &dtype) const
{
    std::vector<int64_t> sizes;
    require(to_ints(shape.ptr(), {"empty", "shape"}, &sizes));
    yoke_dtype wanted = YOKE_NONE;
    require(to_dtype(dtype.ptr(), {"empty", "dtype"}, &wanted));
    yoke_tensor *tensor = nullptr;
    const ScriptLine line;
    wait_in([&] {
        return yoke_group_empty(handle_, sizes.data(), static_cast<int64_t>(sizes.size()),
                                wanted ? wanted : YOKE_F32, &tensor);
    });
    return taken(wrap_tensor(tensor));
}

void Group::dump(const py::object &path) const
{
    const py::bytes file = need_path(path, "dump", "path");
    yoke_status status = YOKE_OK;
    {
        const ReleaseGil release;
        status = yoke_group_dump(handle_, PyBytes_AS_STRING(file.ptr()));
    }
    check(status);
}

// The host's store of one init: a HostStore of yoke/_host_store.py, whose calls give how they ended and a text, the
// value or what is wrong.
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
                const py::object &init_timeout, const py::object &store)
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

}  // namespace

void bind_comm(py::module_ &module)
{
    bound_class<Group>(module, "_Group")
        .def("rank", &Group::rank)
        .def("size", &Group::size)
        .def("local_rank", &Group::local_rank)
        .def("describe", &Group::describe)
        .def("all_reduce", &Group::all_reduce, py::arg("t"), py::arg("op"))
        .def("reduce", &Group::reduce, py::arg("t"), py::arg("root"), py::arg("op"))
        .def("broadcast", &Group::broadcast, py::arg("t"), py::arg("root"))
        .def("all_gather", &Group::all_gather, py::arg("out"), py::arg("t"))
        .def("gather", &Group::gather, py::arg("out"), py::arg("t"), py::arg("root"))
        .def("scatter", &Group::scatter, py::arg("out"), py::arg("t"), py::arg("root"))
        .def("reduce_scatter", &Group::reduce_scatter, py::arg("out"), py::arg("t"), py::arg("op"))
        .def("all_to_all", &Group::all_to_all, py::arg("out"), py::arg("t"))
        .def("send", &Group::send, py::arg("t"), py::arg("dst"))
        .def("recv", &Group::recv, py::arg("t"), py::arg("src"))
        .def("barrier", &Group::barrier)
        .def("monitored_barrier", &Group::monitored_barrier, py::arg("timeout"))
        .def("split", &Group::split, py::arg("color"), py::arg("key"))
        .def("shrink", &Group::shrink, py::arg("timeout"))
        .def("empty", &Group::empty, py::arg("shape"), py::arg("dtype"))
        .def("abort", &Group::abort, py::arg("reason"))
        .def("note_refused", &Group::note_refused, py::arg("call"), py::arg("why"))
        .def("dump", &Group::dump, py::arg("path"))
        .def("join_begin", &Group::join_begin)
        .def("join_end", &Group::join_end, py::arg("mine"))
        .def("regroup", &Group::regroup, py::arg("reducer"), py::arg("mine"))
        .def("regroup_sampler", &Group::regroup_sampler, py::arg("sampler"))
        .def("reducer", &Group::reducer, py::arg("params"), py::arg("names"), py::arg("buffers"),
             py::arg("buffer_names"), py::arg("bucket_mb"), py::arg("compression"),
             py::arg("hook"));
    module.def("_comm_init", init, py::arg("backend"), py::arg("init_method"), py::arg("rank"),
               py::arg("world_size"), py::arg("timeout"), py::arg("init_timeout"),
               py::arg("store"));
    module.def("_comm_init_threads", init_threads, py::arg("size"), py::arg("timeout"));
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
