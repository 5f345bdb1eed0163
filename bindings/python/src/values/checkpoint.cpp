#include "bindings/python/src/values/checkpoint.h"

#include "bindings/python/src/values/dtype.h"
#include "bindings/python/src/values/need.h"

#include <utility>

namespace yoke_python {

namespace {

// Keeper of the checkpoint scope in force in this thread, put back at the end.
class InForceBefore {
public:
    InForceBefore() : before_(yoke_checkpoint_retain(yoke_checkpoint_current())) {}
    ~InForceBefore()
    {
        yoke_checkpoint_swap(before_);  // unless that was closed
        yoke_checkpoint_release(before_);
    }
    InForceBefore(const InForceBefore &) = delete;
    InForceBefore &operator=(const InForceBefore &) = delete;

private:
    yoke_checkpoint *before_;
};

}  // namespace

static int32_t decide(void *user, const yoke_checkpoint_op *op)
{
    auto &decider = *static_cast<CheckpointScope::Decider *>(user);
    const py::gil_scoped_acquire gil;
    try {
        py::tuple shape(op->ndim);
        for (int64_t axis = 0; axis < op->ndim; ++axis)
            shape[static_cast<size_t>(axis)] = op->shape[axis];
        const py::object answer =
            decider.function(op->name, shape, taken(dtype_object(op->dtype)), op->bytes, op->work);
        return answer.cast<int32_t>();
    } catch (py::error_already_set &error) {
        decider.error = std::make_unique<py::error_already_set>(std::move(error));
        return -1;
    }
}

CheckpointScope::CheckpointScope(const py::object &policy, const py::list &ops,
                                 const py::object &function, const py::object &budget, bool offload)
    : thread_(pthread_self())
{
    sync_modes();
    std::vector<const char *> names;
    for (const py::handle name : ops)
        names.push_back(need_text(name, "checkpoint_scope", "policy"));
    yoke_checkpoint_options options{};
    options.struct_size = sizeof options;
    options.offload = offload;
    options.policy = need_text(policy, "checkpoint_scope", "policy");
    options.ops = names.data();
    options.op_count = static_cast<int64_t>(names.size());
    if (!function.is_none()) {
        decider_ = std::make_unique<Decider>();
        decider_->function = function;
        options.decide = decide;
        options.user = decider_.get();
    }
    if (!budget.is_none()) options.budget = budget.cast<MemoryBudget &>().handle();
    const InForceBefore before;
    check(yoke_checkpoint_begin(&options, &handle_));
}

yoke_status CheckpointScope::end_in_force()
{
    const yoke_status status = yoke_checkpoint_end(handle_);
    closed_ |= status != YOKE_E_STATE;
    return status;
}

yoke_status CheckpointScope::end_here()
{
    if (yoke_checkpoint_current() == handle_) return end_in_force();
    const InForceBefore before;
    yoke_checkpoint_swap(handle_);
    return end_in_force();
}

void CheckpointScope::end()
{
    if (!is_of_this_thread()) {
        raise_error(
            YOKE_E_STATE, "checkpoint_scope",
            "this scope was opened in thread %lu, and thread %lu cannot close it; close it in the thread that opened it",
            static_cast<unsigned long>(thread_), static_cast<unsigned long>(pthread_self()));
        throw py::error_already_set();
    }
    const yoke_status status = end_here();
    if (status && decider_ && decider_->error)
        throw py::error_already_set(*std::exchange(decider_->error, nullptr));
    check(status);
}

void CheckpointScope::give_up()
{
    yoke_checkpoint *handle = std::exchange(handle_, nullptr);
    if (!handle) return;
    if (closed_ || !is_of_this_thread() || yoke_checkpoint_current() == handle) {
        yoke_checkpoint_release(handle);
        return;
    }
    const InForceBefore before;
    yoke_checkpoint_swap(handle);
    yoke_checkpoint_release(handle);
}

MemoryBudget::MemoryBudget(const py::object &amount)
{
    check(yoke_memory_budget_create(need_text(amount, "MemoryBudget", "amount"), &handle_));
}

py::tuple MemoryBudget::figures() const
{
    yoke_memory_budget_figures it{};
    it.struct_size = sizeof it;
    check(yoke_memory_budget_report(handle_, &it));
    return py::make_tuple(it.steps, it.forwards, it.cuts, it.limit, it.plain_peak, it.held_bytes[0],
                          it.held_bytes[1], it.peak_bytes[0], it.peak_bytes[1], it.seconds[0],
                          it.seconds[1]);
}

void bind_checkpoint(py::module_ &module)
{
    bound_class<MemoryBudget>(module, "_MemoryBudget")
        .def(py::init<const py::object &>())
        .def("figures", &MemoryBudget::figures);
    bound_class<CheckpointScope>(module, "_CheckpointScope")
        .def(py::init<const py::object &, const py::list &, const py::object &, const py::object &,
                      bool>())
        .def("end", &CheckpointScope::end)
        .def_property_readonly("closed", &CheckpointScope::is_closed)
        .def("abandon", &CheckpointScope::abandon);
}

}  // namespace yoke_python
