#include "bindings/python/src/values/modes.h"

#include "bindings/python/src/runtime/interrupt.h"
#include "bindings/python/src/values/checkpoint.h"
#include "bindings/python/src/values/need.h"
#include "bindings/python/src/values/stream.h"

#include "yoke/amp.h"
#include "yoke/autograd.h"
#include "yoke/device.h"

#include <pthread.h>

#include <utility>

namespace yoke_python {

std::atomic<int> modes_count{0};

namespace {

// Autocast region. Its casts belong to a thread; if the context goes to another thread, this thread makes a similar
// region.
class AutocastRegion : public Bound {
public:
    // Makes a region, nested in the region in force.
    AutocastRegion(const py::object &dtype, const py::object &enabled, const py::object &cache)
        : thread_(pthread_self())
    {
        sync_modes();
        require(to_dtype(dtype.ptr(), {"autocast", "dtype"}, &dtype_));
        enabled_ = need_bool(enabled, "autocast", "enabled");
        cache_ = need_bool(cache, "autocast", "cache_enabled");
        check(yoke_autocast_create(enabled_, dtype_, cache_, &region_));
    }
    ~AutocastRegion() { yoke_autocast_release(region_); }
    AutocastRegion(const AutocastRegion &) = delete;
    AutocastRegion &operator=(const AutocastRegion &) = delete;

    // Returns the object of this thread; the caller owns a reference.
    yoke_status take(yoke_autocast **out) const
    {
        if (!pthread_equal(thread_, pthread_self()))
            return yoke_autocast_create(enabled_, dtype_, cache_, out);
        *out = yoke_autocast_retain(region_);
        return YOKE_OK;
    }

private:
    pthread_t thread_;
    yoke_dtype dtype_ = YOKE_NONE;
    int32_t enabled_ = 0, cache_ = 0;
    yoke_autocast *region_ = nullptr;
};

uint64_t last_id = 0;  // id of a Modes object; under the GIL, as is `ended`
uint64_t ended = 0;    // how often a block ended in another context than its own

// Modes to which the blocks of a context come. Never changes.
class Modes : public Bound {
public:
    Modes(const py::object &grad, const py::object &anomaly, const py::object &region,
          const py::object &checkpoint, const py::object &device, const py::tuple &streams,
          const py::tuple &entries)
        : id(++last_id),
          seen_ended(ended),
          entries_(entries),
          region_(region),
          checkpoint_(checkpoint),
          streams_(streams)
    {
        if (!grad.is_none()) grad_ = need_bool(grad, "grad mode", "enabled");
        if (!anomaly.is_none()) anomaly_ = anomaly.cast<int32_t>();
        if (!device.is_none()) device_ = need_device(device, "device");
        for (const py::handle stream : streams_)
            require(stream_argument(stream.ptr(), {"stream", "stream"}) != nullptr);
        if (!region.is_none()) static_cast<void>(region.cast<AutocastRegion &>());
        if (!checkpoint.is_none()) static_cast<void>(checkpoint.cast<CheckpointScope &>());
        ++modes_count;
    }
    ~Modes() { --modes_count; }
    Modes(const Modes &) = delete;
    Modes &operator=(const Modes &) = delete;

    const uint64_t id;
    const uint64_t seen_ended;
    const py::tuple &entries() const { return entries_; }
    int each_object(visitproc visit, void *arg) const
    {
        Py_VISIT(entries_.ptr());
        Py_VISIT(region_.ptr());
        Py_VISIT(checkpoint_.ptr());
        Py_VISIT(streams_.ptr());
        return 0;
    }
    void clear()
    {
        entries_ = py::tuple();
        streams_ = py::tuple();
        region_ = py::none();
        checkpoint_ = py::none();
    }
    int32_t grad() const { return grad_; }
    int32_t anomaly() const { return anomaly_; }
    const AutocastRegion *region() const { return object_in<AutocastRegion>(region_.ptr()); }
    const CheckpointScope *checkpoint() const
    {
        return object_in<CheckpointScope>(checkpoint_.ptr());
    }
    yoke_device *device() const { return device_; }
    // Separate blocks in _modes.py, which no code closes.
    const py::tuple &streams() const { return streams_; }

private:
    py::tuple entries_;
    int32_t grad_ = -1, anomaly_ = -1;  // -1: set by no block
    py::object region_;
    py::object checkpoint_;
    yoke_device *device_ = nullptr;
    py::tuple streams_;
};

// Id of the modes in force in this thread; 0: none. Read before any check whether in_force exists.
constinit thread_local uint64_t id_in_force = 0;

// Mode in force in a thread, and the mode that stood there before.
class InForce {
public:
    // Leaves at the end of a thread, because regions hold casts.
    ~InForce() { leave(); }

    // Ends the modes in force and puts `modes` (null: none) in force. Returns the first failure; the rest is put in
    // force all the same.
    yoke_status change(const Modes *modes)
    {
        yoke_status status = leave();
        if (modes) status = first(status, enter(*modes));
        id_in_force = id_;
        return status;
    }

private:
    static yoke_status first(yoke_status a, yoke_status b) { return a ? a : b; }

    yoke_status enter(const Modes &modes)
    {
        yoke_status status = YOKE_OK;
        id_ = modes.id;
        ++modes_count;
        if (modes.grad() >= 0) grad_ = yoke_set_grad_enabled(modes.grad());
        if (modes.anomaly() >= 0) anomaly_ = yoke_set_detect_anomaly(modes.anomaly());
        if (const AutocastRegion *region = modes.region()) status = enter_region(*region);
        if (const CheckpointScope *scope = modes.checkpoint()) enter_checkpoint(*scope);
        for (const py::handle stream : modes.streams())
            status = first(status, enter_stream(stream));
        if (modes.device()) status = first(status, enter_device(modes.device()));
        return status;
    }

    // Makes the device current. Keeps the thread's own device, or its absence, so that the thread later follows the
    // process's default again.
    yoke_status enter_device(yoke_device *device)
    {
        device_ = yoke_device_swap(nullptr);
        has_device_ = true;
        return yoke_set_device(device);
    }

    yoke_status enter_region(const AutocastRegion &region)
    {
        const yoke_status status = region.take(&own_region_);
        if (status) return status;
        region_ = yoke_autocast_retain(yoke_autocast_current());
        yoke_autocast_swap(own_region_);
        return YOKE_OK;
    }

    // Puts a checkpoint scope in force. Does nothing in a thread other than the scope's own, and for a closed scope.
    void enter_checkpoint(const CheckpointScope &scope)
    {
        if (!scope.handle() || !scope.is_of_this_thread()) return;
        checkpoint_ = yoke_checkpoint_retain(yoke_checkpoint_current());
        yoke_checkpoint_swap(scope.handle());
        has_checkpoint_ = true;
    }

    void leave_checkpoint()
    {
        yoke_checkpoint_swap(nullptr);
        if (checkpoint_) yoke_checkpoint_swap(checkpoint_);
    }

    yoke_status enter_stream(py::handle object)
    {
        yoke_stream *stream = stream_argument(object.ptr(), {"stream", "stream"}),
                    *before = nullptr;
        if (!stream) return PyErr_Clear(), YOKE_E_CLOSED;
        const yoke_status status = yoke_current_stream(yoke_stream_device(stream), &before);
        if (status) return status;
        streams_.push_back(before);
        return yoke_set_stream(stream);
    }

    yoke_status leave()
    {
        yoke_status status = YOKE_OK;
        if (grad_ >= 0) yoke_set_grad_enabled(grad_);
        if (anomaly_ >= 0) yoke_set_detect_anomaly(anomaly_);
        if (own_region_) yoke_autocast_swap(region_);
        if (has_checkpoint_) leave_checkpoint();
        for (auto at = streams_.rbegin(); at != streams_.rend(); ++at)
            status = first(status, yoke_set_stream(*at));
        if (has_device_) yoke_device_swap(device_);
        if (id_) --modes_count;
        forget();
        return status;
    }

    void forget()
    {
        for (yoke_stream *stream : streams_) yoke_stream_release(stream);
        streams_.clear();
        yoke_autocast_release(std::exchange(own_region_, nullptr));
        yoke_autocast_release(std::exchange(region_, nullptr));
        yoke_checkpoint_release(std::exchange(checkpoint_, nullptr));
        has_checkpoint_ = false;
        device_ = nullptr;
        has_device_ = false;
        grad_ = anomaly_ = -1;
        id_ = 0;
    }

    uint64_t id_ = 0;
    int32_t grad_ = -1, anomaly_ = -1;
    yoke_autocast *own_region_ = nullptr;  // in force, in place of region_
    yoke_autocast *region_ = nullptr;
    bool has_checkpoint_ = false;
    yoke_checkpoint *checkpoint_ = nullptr;  // in whose place another is in force
    bool has_device_ = false;
    yoke_device *device_ = nullptr;  // the thread's own, while another is in force; null: none
    std::vector<yoke_stream *> streams_;
};
thread_local InForce in_force;

PyObject *variable;  // contextvars.ContextVar: a Modes object, or None

// Returns the blocks of the running context, kept alive by the context; null for none.
const Modes *modes_of_context()
{
    PyObject *found = nullptr;
    if (PyContextVar_Get(variable, nullptr, &found) < 0) PyErr_Clear();
    const Modes *modes = found && found != Py_None ? object_in<Modes>(found) : nullptr;
    Py_XDECREF(found);
    return modes;
}

py::object call_modes(const char *function, const py::tuple &arguments)
{
    return py::module_::import("yoke._modes").attr(function)(*arguments);
}

thread_local bool pruning = false;  // calls of the pruning see unchanged blocks

// Returns the blocks of the running context, without blocks that ended elsewhere.
const Modes *present_modes()
{
    const Modes *modes = modes_of_context();
    if (!modes || modes->seen_ended == ended || pruning || PyErr_Occurred()) return modes;
    struct Pruning {
        Pruning() { pruning = true; }
        ~Pruning() { pruning = false; }
    } const guard;
    call_modes("prune", py::make_tuple());
    return modes_of_context();
}

py::object entries()
{
    const Modes *modes = present_modes();
    return modes ? py::object(modes->entries()) : py::object(py::tuple());
}

void put_in_force()
{
    const Modes *modes = present_modes();
    if ((modes ? modes->id : 0) != id_in_force) check(in_force.change(modes));
}

bool sets_stream(const Modes &modes, yoke_device *device)
{
    for (const py::handle object : modes.streams()) {
        yoke_stream *stream = stream_argument(object.ptr(), {"stream", "stream"});
        if (stream && yoke_stream_device(stream) == device) return true;
    }
    return false;
}

}  // namespace

void sync_modes_now()
{
    const Modes *modes = modes_of_context();
    const bool whole = !modes || modes->seen_ended == ended;
    if ((whole && (modes ? modes->id : 0) == id_in_force) || pruning) return;
    try {
        // If a mode cannot be put in force, the following call fails too, with the reason.
        in_force.change(present_modes());
    } catch (const py::error_already_set &error) {
        raise_later(error);
    } catch (
        const std::exception &) {  // no memory for the list of blocks: the thread keeps its modes
        PyErr_Clear();
    }
}

bool override_mode(const char *kind, const py::object &value, yoke_device *device)
{
    sync_modes();
    const Modes *modes = modes_of_context();
    if (!modes) return false;
    const std::string_view name(kind);
    if (name == "grad"      ? modes->grad() < 0
        : name == "anomaly" ? modes->anomaly() < 0
        : device            ? !sets_stream(*modes, device)
                            : !modes->device())
        return false;
    call_modes("override", py::make_tuple(kind, value));
    return true;
}

void enter_block(const py::object &owner, const char *kind, const py::object &value)
{
    call_modes("enter", py::make_tuple(owner, kind, value));
}

void leave_block(const py::object &owner)
{
    call_modes("leave", py::make_tuple(owner));
}

// Makes blocks visible to the garbage collector: a block never ended holds its context (by the token of its
// variable), and the context holds the block.
void collect_modes(PyHeapTypeObject *heap_type)
{
    PyTypeObject &type = heap_type->ht_type;
    type.tp_flags |= Py_TPFLAGS_HAVE_GC;
    type.tp_traverse = [](PyObject *self, visitproc visit, void *arg) {
#if PY_VERSION_HEX >= 0x03090000
        Py_VISIT(Py_TYPE(self));
#endif
        const Modes *modes = object_in<Modes>(self);
        return modes ? modes->each_object(visit, arg) : 0;
    };
    type.tp_clear = [](PyObject *self) {
        if (Modes *modes = object_in<Modes>(self)) modes->clear();
        return 0;
    };
}

void bind_modes(py::module_ &module)
{
    variable = PyContextVar_New("yoke.modes", Py_None);
    require(variable != nullptr);
    bound_class<AutocastRegion>(module, "_AutocastRegion")
        .def(py::init<const py::object &, const py::object &, const py::object &>());
    bound_class<Modes>(module, "_Modes", "", collect_modes)
        .def(
            py::init<const py::object &, const py::object &, const py::object &, const py::object &,
                     const py::object &, const py::tuple &, const py::tuple &>())
        .def_property_readonly("entries", [](const py::object &self) {
            // Not as a Modes object, whose use puts blocks in force.
            const Modes *modes = object_in<Modes>(self.ptr());
            if (!modes) refuse_unmade(self.ptr());
            return modes->entries();
        });
    module.attr("_modes") = py::reinterpret_borrow<py::object>(variable);
    module.def("_modes_entries", entries);
    module.def("_modes_put_in_force", put_in_force);
    module.def("_modes_ended", [] { ++ended; });
}

}  // namespace yoke_python
