// optimizer.h: parts of every optimizer: groups of parameters, each with options, and state for each parameter.
//
// A step reads the gradients of the leaves, and changes the parameters in place outside the tape, with a single
// launch per group. Parameters without a gradient do not change. A step never waits for a value of the device:
// whether the step is skipped, and the number of steps so far, are scalars on the device.
//
// With master weights, a parameter of a half dtype has a copy in float32, which the steps change. The parameter is
// the rounded copy, written in the same pass. The parameter's state is float32 then, else of the parameter's dtype.
// State follows a parameter to another device or dtype.
//
// An optimizer serves a single thread at a time; the C API refuses a second thread.
#pragma once

#include "core/base/turn.h"
#include "core/tensor/tensor.h"

#include <string_view>
#include <vector>

struct yoke_optimizer : public yoke::RefCounted {
    // Options of all kinds of optimizers.
    struct CommonOptions {
        double lr = 0;
        double weight_decay = 0;
        bool master_weights = false;  // fixed when the group is added
    };

    yoke::Turns turns;

    virtual const char *kind() const noexcept = 0;  // "SGD"
    // Returns the names of the states that a parameter may have; the last name is "master".
    virtual std::span<const char *const> state_names() const noexcept = 0;

    size_t group_count() const { return groups_.size(); }
    // Returns the parameters of a group. Raises YOKE_E_INDEX for an unknown group.
    const std::vector<yoke::Tensor> &params(int64_t group) const { return at(group).params; }

    // Changes all parameters with a gradient. `found_infs` is empty or has a scalar for each device; if the scalar is
    // not 0, the step is skipped on that device. If memory for a state is missing, raises and changes nothing.
    void step(std::span<const yoke::Tensor> found_infs = {});
    void zero_grad(bool set_to_none);

    // Notes the next step of a schedule over this optimizer. Warns once if this step comes before the optimizer's
    // first step.
    void note_schedule_step() noexcept;

    double lr(int64_t group) const { return common(index_of(group)).lr; }
    void set_lr(int64_t group, double lr);  // -1: every group
    // Returns the named state of a parameter, on the parameter's device; null if there is no such state yet. Raises
    // YOKE_E_INDEX for an unknown parameter, and YOKE_E_VALUE for an unknown name.
    yoke::Tensor state(int64_t group, int64_t index, std::string_view name) const;
    // Replaces the state by a copy; null removes the state. Waits for the value of "step", which must be a possible
    // number of steps.
    void set_state(int64_t group, int64_t index, std::string_view name, const yoke_tensor *value);
    // Replaces the states of all parameters by copies. `values` has the states by group, parameter and name, in
    // order; null removes a state. If a state is not valid, raises and changes no state.
    void set_states(const std::vector<std::vector<std::vector<yoke::Tensor>>> &values);

protected:
    static constexpr size_t kMaxStates = 4;
    struct Group {
        std::vector<yoke::Tensor> params;
        std::vector<yoke::Tensor> states[kMaxStates];  // null where there is none yet
    };
    // Data of a group's step: the parameters with a gradient.
    struct Batch {
        size_t group;
        std::vector<yoke_tensor *> params, grads, states[kMaxStates];
        std::vector<yoke::Tensor> held;  // the gradients
        struct Fresh {
            size_t slot, index;
            yoke::Tensor tensor;
        };
        std::vector<Fresh> fresh;
        const yoke_tensor *found_inf = nullptr;
    };

    virtual CommonOptions &common(size_t group) = 0;
    const CommonOptions &common(size_t group) const
    {
        return const_cast<yoke_optimizer *>(this)->common(group);
    }
    // Returns a set of bits: bit k is set if a step of this group needs state k. The master has no bit: the option
    // master_weights decides.
    virtual unsigned needed_states(size_t group) const = 0;
    virtual void launch(const Batch &batch) = 0;

    // Adds a group of parameters. Raises unless all are leaves of a floating dtype with requires_grad, on the same
    // device, not expanded, and not in a group already. Raises YOKE_E_VALUE for an empty list.
    void add_params(yoke::TensorList params);
    size_t index_of(int64_t group) const;
    // Raises YOKE_E_VALUE, naming the option, unless the value is finite and at least 0.
    static void check_number(double value, const char *kind, const char *name);
    static void check_common(const CommonOptions &options, const char *kind);
    void check_masters_stay(size_t group, bool master_weights) const;

private:
    const Group &at(int64_t group) const { return groups_[index_of(group)]; }
    void check_param(const yoke_tensor &param, size_t index, yoke::TensorList params) const;
    bool has_master(size_t group, const yoke_tensor &param) const;
    yoke::Tensor following(size_t group, size_t index, size_t slot) const;
    void check_device(const Batch &batch) const;
    bool is_step(size_t slot) const;
    size_t slot_of(std::string_view name) const;
    size_t master_slot() const { return state_names().size() - 1; }
    yoke::Tensor make_state(size_t group, const yoke_tensor &param, size_t slot) const;
    yoke::Tensor layout_of_state(size_t group, const yoke_tensor &param, size_t slot) const;
    bool collect(size_t group, Batch &batch) const;
    yoke_tensor *state_of(Batch &batch, size_t slot, size_t index) const;
    void add_states(Batch &batch, size_t index) const;
    size_t checked_index(int64_t group, int64_t index) const;
    yoke::Tensor copy_of_state(int64_t group, int64_t index, size_t slot,
                               const yoke_tensor &value) const;

    std::vector<Group> groups_;
    bool has_stepped_ = false;  // also true with the state of such an optimizer
    bool has_said_order_ = false;
};
