// parallel.cpp: reducers of gradients and samplers, of yoke/parallel.h; yoke/_parallel.py and yoke/data.py have the
// script's interface.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/runtime/interrupt.h"
#include "bindings/python/src/runtime/script.h"
#include "bindings/python/src/values/group.h"
#include "bindings/python/src/values/need.h"
#include "bindings/python/src/values/tree.h"
#include "bindings/python/src/values/work.h"

#include "yoke/parallel.h"

#include <string>
#include <vector>

namespace yoke_python {

namespace {

// ---- Gradients --------------------------------------------------------------------------------------------------

// Function (tensor, index, is_last) of the script, called in the thread that runs backward. It returns a Work, or
// None if the tensor has the mean already.
class ScriptHook {
public:
    explicit ScriptHook(py::object function) : function_(std::move(function)) {}

    static yoke_status run(void *user, yoke_tensor *bucket, int32_t index, int32_t is_last,
                           yoke_group *, yoke_work **work) noexcept
    {
        auto &self = *static_cast<ScriptHook *>(user);
        const py::gil_scoped_acquire held;
        try {
            const py::object tensor = taken(wrap_tensor(yoke_tensor_retain(bucket)));
            const py::object given = self.function_(tensor, index, is_last != 0);
            *work = given.is_none()
                        ? nullptr
                        : yoke_work_retain(work_in(given, "backward", "the hook's result"));
            return YOKE_OK;
        } catch (const std::exception &error) {
            self.text_ = Waiting::keep(error);
            return YOKE_E_CANCELLED;
        }
    }
    static const char *problem(void *user)
    {
        return static_cast<ScriptHook *>(user)->text_.c_str();
    }
    static void drop(void *user)
    {
        const py::gil_scoped_acquire held;
        delete static_cast<ScriptHook *>(user);
    }

private:
    const py::object function_;
    std::string text_;
};

std::vector<std::string> texts_of(const py::object &sequence)
{
    std::vector<std::string> texts;
    for (const py::handle each : sequence) texts.push_back(py::cast<std::string>(each));
    return texts;
}

std::vector<const char *> pointers_to(const std::vector<std::string> &texts)
{
    std::vector<const char *> pointers;
    for (const std::string &each : texts) pointers.push_back(each.c_str());
    return pointers;
}

class Reducer : public Bound {
public:
    explicit Reducer(yoke_reducer *handle) : handle_(handle) {}
    ~Reducer()
    {
        const ReleaseGil release;
        yoke_reducer_release(handle_);
    }
    Reducer(const Reducer &) = delete;
    Reducer &operator=(const Reducer &) = delete;

    bool sync() const { return yoke_reducer_get_sync(handle_) == 1; }
    void set_sync(bool is_on) const { yoke_python::check(yoke_reducer_set_sync(handle_, is_on)); }
    void set_weight(const py::object &n) const
    {
        yoke_python::check(yoke_reducer_set_weight(handle_, need_float(n, "set_weight", "n")));
    }
    // Returns the number of a forward that begins now.
    uint64_t check() const
    {
        uint64_t forward = 0;
        yoke_python::check(yoke_reducer_check(handle_, &forward));
        return forward;
    }
    // Returns for each output its replacement, or None.
    py::list tie(uint64_t forward, const py::object &outputs) const
    {
        const TensorSequence given(outputs, "DistributedDataParallel", "outputs");
        std::vector<yoke_tensor *> tied(static_cast<size_t>(given.size()));
        yoke_python::check(
            yoke_reducer_tie(handle_, forward, given.data(), given.size(), tied.data()));
        return wrap_all(tied);
    }
    // Returns the reducer's state. This call and the next may wait for another thread, which needs the interpreter to
    // free objects. So they release the lock.
    py::object state() const
    {
        return object_state(
            handle_, +[](yoke_reducer *reducer, yoke_state **out) {
                const py::gil_scoped_release others_run;
                return yoke_reducer_state(reducer, out);
            });
    }
    void load_state(const py::object &state) const
    {
        load_object_state(
            handle_, state, +[](yoke_reducer *reducer, yoke_state *given) {
                const py::gil_scoped_release others_run;
                return yoke_reducer_load_state(reducer, given);
            });
    }
    yoke_reducer *handle() const { return handle_; }

private:
    yoke_reducer *handle_;
};

// ---- Examples ---------------------------------------------------------------------------------------------------

class Sampler : public Bound {
public:
    Sampler(int64_t count, int32_t rank, int32_t size, bool shuffle, int64_t seed, bool drop_last,
            bool pad, const py::object &shares)
    {
        std::vector<double> parts;
        if (!shares.is_none())
            for (const py::handle each : shares) parts.push_back(py::cast<double>(each));
        yoke_sampler_options options{};
        options.struct_size = sizeof options;
        options.count = count;
        options.rank = rank;
        options.world_size = size;
        options.no_shuffle = !shuffle;
        options.seed = seed;
        options.drop_last = drop_last;
        options.no_pad = !pad;
        options.shares = shares.is_none() ? nullptr : parts.data();
        yoke_python::check(yoke_sampler_create(&options, &handle_));
    }
    ~Sampler() { yoke_sampler_release(handle_); }
    Sampler(const Sampler &) = delete;
    Sampler &operator=(const Sampler &) = delete;

    void set_epoch(int64_t epoch) const { check(yoke_sampler_set_epoch(handle_, epoch)); }
    void begin() const { check(yoke_sampler_begin(handle_)); }
    int64_t next() const
    {
        int64_t index = 0;
        check(yoke_sampler_next(handle_, &index));
        return index;
    }
    int64_t length() const { return yoke_sampler_length(handle_); }
    py::tuple state() const
    {
        yoke_sampler_state now{};
        now.struct_size = sizeof now;
        check(yoke_sampler_get_state(handle_, &now));
        return py::make_tuple(now.epoch, now.consumed);
    }
    void load(int64_t epoch, int64_t consumed) const
    {
        yoke_sampler_state state{};
        state.struct_size = sizeof state;
        state.epoch = epoch;
        state.consumed = consumed;
        check(yoke_sampler_load(handle_, &state));
    }
    yoke_sampler *handle() const { return handle_; }

private:
    yoke_sampler *handle_ = nullptr;
};

// ---- Both, of a group ---------------------------------------------------------------------------------------------

// The arguments of DistributedDataParallel, which has checked all but the tensors.
struct ReducerArguments {
    py::object params, names, buffers, buffer_names, bucket_mb, compression, hook, reduce_dtype;
};

py::object make_reducer(const Group &group, const ReducerArguments &given)
{
    constexpr const char *call = "DistributedDataParallel";
    const TensorSequence params(given.params, call, "module");
    const TensorSequence buffers(given.buffers, call, "module");
    const std::vector<std::string> names = texts_of(given.names),
                                   of_buffers = texts_of(given.buffer_names);
    yoke_reducer_options options{};
    options.struct_size = sizeof options;
    options.bucket_mb = need_float(given.bucket_mb, call, "bucket_mb");
    if (options.bucket_mb == 0)  // 0 means the default in C
        require(
            raise_error(
                YOKE_E_VALUE, call,
                "argument 'bucket_mb' is %R; it must be a number of MiB, above 0 and at most 1e+06",
                given.bucket_mb.ptr()) != nullptr);
    options.compression =
        given.compression.is_none() ? nullptr : need_text(given.compression, call, "compression");
    require(to_dtype(given.reduce_dtype.ptr(), {call, "reduce_dtype"}, &options.reduce_dtype));
    yoke_bucket_hook hook{};
    hook.struct_size = sizeof hook;
    if (!given.hook.is_none()) {
        hook.user = new ScriptHook(given.hook);
        hook.run = ScriptHook::run;
        hook.problem = ScriptHook::problem;
        hook.drop = ScriptHook::drop;
        options.hook = &hook;
    }
    yoke_reducer *reducer = nullptr;
    wait_in([&] {
        return yoke_reducer_create(group.handle(), params.data(), pointers_to(names).data(),
                                   params.size(), buffers.data(), pointers_to(of_buffers).data(),
                                   buffers.size(), &options, &reducer);
    });
    return py::cast(new Reducer(reducer), py::return_value_policy::take_ownership);
}

// Calls an exchange: gives this rank's state (or None) and returns the received state of another rank.
template <class Call>
py::object exchanged(const py::object &mine, const char *name, const Call &call)
{
    const StateRef given(mine.is_none() ? nullptr : state_of(mine, name, "objects"));
    yoke_state *told = nullptr;
    const ScriptLine line;
    wait_in([&] { return call(given.get(), &told); });
    const StateRef held(told);
    return held ? value_of(held.get()) : py::none();
}

py::object join_end(const Group &group, const py::object &mine)
{
    return exchanged(mine, "join", [&](yoke_state *given, yoke_state **told) {
        return yoke_group_join_end(group.handle(), given, told);
    });
}

py::object regroup(const Group &group, const py::object &reducer, const py::object &mine)
{
    yoke_reducer *handle = py::cast<const Reducer &>(reducer).handle();
    yoke_status status = YOKE_OK;
    try {
        return exchanged(mine, "regroup", [&](yoke_state *given, yoke_state **told) {
            return status = yoke_reducer_regroup(handle, group.handle(), given, told);
        });
    } catch (const std::exception &error) {  // an error on this rank alone ends the group
        const std::string why = error.what();
        if (status == YOKE_OK) {
            const ReleaseGil released;
            (void)yoke_group_abort(group.handle(), why.c_str());
        }
        throw;
    }
}

void regroup_sampler(const Group &group, const py::object &sampler)
{
    yoke_sampler *handle = py::cast<const Sampler &>(sampler).handle();
    const ScriptLine line;
    wait_in([&] { return yoke_sampler_regroup(handle, group.handle()); });
}

// Adds a method to the class of groups, which comm.cpp binds.
template <class Function, class... Extra>
void def_on_group(py::module_ &module, const char *name, Function function, const Extra &...extra)
{
    py::object type = module.attr("_Group");
    type.attr(name) = py::cpp_function(function, py::name(name), py::is_method(type), extra...);
}

}  // namespace

void bind_parallel(py::module_ &module)
{
    def_on_group(
        module, "reducer",
        [](const Group &group, const py::object &params, const py::object &names,
           const py::object &buffers, const py::object &buffer_names, const py::object &bucket_mb,
           const py::object &compression, const py::object &hook, const py::object &reduce_dtype) {
            return make_reducer(group, {params, names, buffers, buffer_names, bucket_mb,
                                        compression, hook, reduce_dtype});
        },
        py::arg("params"), py::arg("names"), py::arg("buffers"), py::arg("buffer_names"),
        py::arg("bucket_mb"), py::arg("compression"), py::arg("hook"), py::arg("reduce_dtype"));
    def_on_group(module, "join_begin",
                 [](const Group &group) { check(yoke_group_join_begin(group.handle())); });
    def_on_group(module, "join_end", join_end, py::arg("mine"));
    def_on_group(module, "regroup", regroup, py::arg("reducer"), py::arg("mine"));
    def_on_group(module, "regroup_sampler", regroup_sampler, py::arg("sampler"));
    bound_class<Reducer>(module, "_Reducer")
        .def_property("sync", &Reducer::sync, &Reducer::set_sync)
        .def("set_weight", &Reducer::set_weight, py::arg("n"))
        .def("check", &Reducer::check)
        .def("tie", &Reducer::tie, py::arg("forward"), py::arg("outputs"))
        .def("state", &Reducer::state)
        .def("load_state", &Reducer::load_state, py::arg("state"));
    bound_class<Sampler>(module, "_Sampler")
        .def(py::init<int64_t, int32_t, int32_t, bool, int64_t, bool, bool, const py::object &>(),
             py::arg("n"), py::arg("rank"), py::arg("world_size"), py::arg("shuffle"),
             py::arg("seed"), py::arg("drop_last"), py::arg("pad"), py::arg("shares"))
        .def("set_epoch", &Sampler::set_epoch, py::arg("epoch"))
        .def("begin", &Sampler::begin)
        .def("next", &Sampler::next)
        .def("length", &Sampler::length)
        .def("state", &Sampler::state)
        .def("load", &Sampler::load, py::arg("epoch"), py::arg("consumed"));
}

}  // namespace yoke_python
