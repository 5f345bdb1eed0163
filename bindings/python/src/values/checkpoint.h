// checkpoint.h: a scope whose activations are made again, as one `with` block has it (yoke/_checkpoint.py).
//
// C puts a scope in force in a thread; here modes.cpp does, wherever the context runs that opened it. One that is made
// is open and not yet in force.
#pragma once

#include "bindings/python/src/runtime/bind.h"

#include "yoke/checkpoint.h"

#include <pthread.h>

#include <memory>

namespace yoke_python {

class MemoryBudget : public Bound {
public:
    explicit MemoryBudget(const py::object &amount);
    ~MemoryBudget() { yoke_memory_budget_release(handle_); }
    MemoryBudget(const MemoryBudget &) = delete;
    MemoryBudget &operator=(const MemoryBudget &) = delete;

    // The fields of yoke.BudgetReport.
    py::tuple figures() const;
    yoke_memory_budget *handle() const { return handle_; }

private:
    yoke_memory_budget *handle_ = nullptr;
};

class CheckpointScope : public Bound {
public:
    // `policy` is "full", "matmul", "ops" with their names, "function" with one that is told of an op and answers
    // whether its results stay, or "budget" with a MemoryBudget. Within the scope of the running context.
    CheckpointScope(const py::object &policy, const py::list &ops, const py::object &decide,
                    const py::object &budget, bool offload);
    ~CheckpointScope() { give_up(); }
    CheckpointScope(const CheckpointScope &) = delete;
    CheckpointScope &operator=(const CheckpointScope &) = delete;

    // Closes it. Raises what its function did; then it is closed as well.
    void end();
    bool is_closed() const { return closed_; }
    // Lets go of it, open or not; in another thread, of one that is open, nothing: its own does so later.
    void abandon()
    {
        if (is_of_this_thread()) give_up();
    }
    // Other threads log nothing into it.
    bool is_of_this_thread() const { return pthread_equal(thread_, pthread_self()) != 0; }
    // Null once it was given up.
    yoke_checkpoint *handle() const { return handle_; }

    // A policy's function, and what it raised.
    struct Decider {
        py::object function;
        std::unique_ptr<py::error_already_set> error;
    };

private:
    void give_up();
    yoke_status end_in_force();
    yoke_status end_here();

    const pthread_t thread_;
    std::unique_ptr<Decider> decider_;
    bool closed_ = false;
    yoke_checkpoint *handle_ = nullptr;
};

// Adds the classes to the module.
void bind_checkpoint(py::module_ &module);

}  // namespace yoke_python
