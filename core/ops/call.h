// call.h: state of an op call under run(): its tensors, its plan, its launch record.
#pragma once

#include "core/ops/op_node.h"
#include "core/ops/plan.h"
#include "core/ops/short_list.h"

namespace yoke {

class Scope;

// State of a single call, on the stack of run().
class Call {
public:
    Call(const OpDef &op, int32_t number, yoke_arg *args);
    void execute(Tensor *results);

private:
    // Returns the device of the call's tensors. This function and the next are the steps of execute, in this order.
    static Device &find_device(const OpDef &op, const yoke_arg *args);
    void check_written();
    void separate_overlaps(int written);
    void collect_tensors();
    void check_gradient_of_written(const yoke_tensor &x);
    void launch();
    void launch_in(Scope &scope, yoke_launch &record, std::span<Storage *const> storages) const;
    void record();
    void mark_written();
    void give(Tensor *results);

    // Executes an op whose result is written into an argument.
    void execute_in_place(Tensor *results);
    Tensor new_value(yoke_tensor &x, yoke_arg *args);
    void take_history(yoke_tensor &x);
    void check_result_fits(const yoke_tensor &x) const;

    void describe_scalar(yoke_operand &o, const yoke_arg &value) const;
    template <class Visit>
    void each_tensor(Visit visit) const;

    const OpDef &op_;
    const int32_t number_;
    yoke_arg *args_;
    Plan plan_;
    ShortList<yoke_tensor *, kMaxArgs>
        tensors_;         // in launch order; absent optional tensors and scalars are null
    uint32_t needs_ = 0;  // a bit for each argument that wants a gradient
};

}  // namespace yoke
