// checkpoints.cpp: managers of checkpoints; yoke/_checkpoints.py has the script's interface.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/values/need.h"
#include "bindings/python/src/values/tree.h"
#include "bindings/python/src/values/work.h"

#include "yoke/checkpoints.h"

namespace yoke_python {

namespace {

// Returns a count; refuses True, although True is an int for Python.
int64_t need_count(const py::object &value, const char *call, const char *argument)
{
    if (is_bool(value.ptr()))
        require(raise_type({call, argument}, "an integer", value.ptr()) != nullptr);
    int64_t number = 0;
    require(to_int64(value.ptr(), {call, argument}, &number));
    return number;
}

class CheckpointManager : public Bound {
public:
    CheckpointManager(const py::object &folder, const py::object &keep)
    {
        const py::bytes path = need_path(folder, "CheckpointManager", "folder");
        check(yoke_checkpoint_manager_open(PyBytes_AS_STRING(path.ptr()),
                                           need_count(keep, "CheckpointManager", "keep"),
                                           &handle_));
    }
    ~CheckpointManager() { yoke_checkpoint_manager_release(handle_); }
    CheckpointManager(const CheckpointManager &) = delete;
    CheckpointManager &operator=(const CheckpointManager &) = delete;

    py::object save(const py::object &step, const py::object &state, const py::object &metadata,
                    bool blocking);
    py::object latest() const;
    py::object steps() const;
    py::object load(const py::object &step, const py::object &device, bool verify) const;

private:
    yoke_checkpoint_manager *handle_ = nullptr;
};

// Returns the number of a step. Raises unless the number is an int from 0.
int64_t need_step(const py::object &step, const char *call)
{
    const int64_t number = need_count(step, call, "step");
    if (number < 0)
        require(raise_error(YOKE_E_VALUE, call, "argument 'step' is %lld; steps count from 0",
                            static_cast<long long>(number)) != nullptr);
    return number;
}

py::object CheckpointManager::save(const py::object &step, const py::object &state,
                                   const py::object &metadata, bool blocking)
{
    const int64_t number = need_step(step, "save");
    const StateRef tree = state_of(state, "save", "state");
    const StateRef about = metadata.is_none() ? nullptr : state_of(metadata, "save", "metadata");
    yoke_work *work = nullptr;
    yoke_status status = YOKE_OK;
    {
        const Relieved relieved;
        const ReleaseGil release;
        status =
            yoke_checkpoint_manager_save(handle_, number, tree.get(), about.get(), blocking, &work);
    }
    check(status);
    return object_of(work);
}

py::object CheckpointManager::latest() const
{
    int64_t step = -1;
    yoke_status status = YOKE_OK;
    {
        const ReleaseGil release;
        status = yoke_checkpoint_manager_latest(handle_, &step);
    }
    check(status);
    if (step < 0) return py::none();
    return py::int_(step);
}

py::object CheckpointManager::steps() const
{
    yoke_state *found = nullptr;
    yoke_status status = YOKE_OK;
    {
        const ReleaseGil release;
        status = yoke_checkpoint_manager_steps(handle_, &found);
    }
    const StateRef state(found);
    check(status);
    return value_of(state.get());
}

py::object CheckpointManager::load(const py::object &step, const py::object &device,
                                   bool verify) const
{
    const int64_t number = step.is_none() ? -1 : need_step(step, "load");
    yoke_device *where = nullptr;
    require(to_device(device.ptr(), {"load", "device"}, &where));
    yoke_state *found = nullptr;
    const yoke_status status = with_relief([&] {
        const ReleaseGil release;
        return yoke_checkpoint_manager_load(handle_, number, where, verify, nullptr, &found);
    });
    const StateRef state(found);
    check(status);
    return value_of(state.get());
}

py::object misfits(const py::object &state, const py::object &into)
{
    const StateRef from = state_of(state, "load", "state"), to = state_of(into, "load", "into");
    yoke_state *found = nullptr;
    const yoke_status status = yoke_state_misfits(from.get(), to.get(), &found);
    const StateRef list(found);
    check(status);
    return value_of(list.get());
}

void copy_into(const py::object &state, const py::object &into)
{
    const StateRef from = state_of(state, "load", "state"), to = state_of(into, "load", "into");
    yoke_status status = YOKE_OK;
    {
        const Relieved relieved;
        const ReleaseGil release;
        status = yoke_state_copy_into(from.get(), to.get());
    }
    check(status);
}

}  // namespace

void bind_checkpoints(py::module_ &module)
{
    bound_class<CheckpointManager>(module, "_CheckpointManager")
        .def(py::init<const py::object &, const py::object &>(), py::arg("folder"), py::arg("keep"))
        .def("save", &CheckpointManager::save, py::arg("step"), py::arg("state"),
             py::arg("metadata"), py::arg("blocking"))
        .def("latest", &CheckpointManager::latest)
        .def("steps", &CheckpointManager::steps)
        .def("load", &CheckpointManager::load, py::arg("step"), py::arg("device"),
             py::arg("verify"));
    module.def("_misfits", misfits, py::arg("state"), py::arg("into"));
    module.def("_copy_into", copy_into, py::arg("state"), py::arg("into"));
}

}  // namespace yoke_python
