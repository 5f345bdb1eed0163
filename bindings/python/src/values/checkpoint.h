// checkpoint.h: scope with recomputed activations, for a `with` block (yoke/_checkpoint.py).
//
// C puts a scope in force in a thread; here modes.cpp does so, wherever the scope's context runs. A new scope is open
// and not yet in force.
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

    // Returns the fields of yoke.BudgetReport.
    py::tuple figures() const;
    yoke_memory_budget *handle() const { return handle_; }

private:
    yoke_memory_budget *handle_ = nullptr;
};

class CheckpointScope : public Bound {
public:
    // Opens a scope, nested in the running context's scope. `policy` is "full", "matmul", "ops" with their names, or
    // "budget" with a MemoryBudget. Or it is "function", with a function called for an op that answers whether the
    // op's results stay.
    CheckpointScope(const py::object &policy, const py::list &ops, const py::object &decide,
                    const py::object &budget, bool offload);
    ~CheckpointScope() { give_up(); }
    CheckpointScope(const CheckpointScope &) = delete;
    CheckpointScope &operator=(const CheckpointScope &) = delete;

    // Closes the scope, and raises the error of its function; after an error the scope is closed as well.
    void end();
    bool is_closed() const { return closed_; }
    // Releases the scope, open or closed. In another thread does nothing for an open scope: its own thread releases
    // it later.
    void abandon()
    {
        if (is_of_this_thread()) give_up();
    }
    // Returns whether this thread owns the scope; other threads record nothing in it.
    bool is_of_this_thread() const { return pthread_equal(thread_, pthread_self()) != 0; }
    // Returns the handle; null once the scope was given up.
    yoke_checkpoint *handle() const { return handle_; }

    // Policy's function, and its error.
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
