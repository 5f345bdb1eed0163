// objects.h: the layout of training objects in a state: alike in all languages, and PyTorch's layout if there is any.
//
// The tensors of a state are the live tensors. A load takes copies, of the whole state or not at all. If a field is
// missing, left over, of another kind or out of range, the load raises YOKE_E_VALUE or YOKE_E_TYPE with the field's
// place.
#pragma once

#include "core/base/random.h"
#include "core/optim/ema.h"
#include "core/optim/grad_scaler.h"
#include "core/optim/optimizer.h"
#include "core/state/tree.h"

namespace yoke {

// Returns an optimizer's state: {"state": {NUMBER: {NAME: tensor, …}, …}, "param_groups": [{OPTION: value, …,
// "params": [NUMBER, …]}, …]}. Parameters are numbered through all groups; a parameter without a step has no state.
Ref<State> state_of(const yoke_optimizer &optimizer);
// Loads an optimizer's state. Accepts PyTorch's state too, if its additional options are off.
void load_state(yoke_optimizer &optimizer, const State &state);

// Returns {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"}, or {} if the scaler is
// disabled. Waits for the device.
Ref<State> state_of(const yoke_grad_scaler &scaler);
void load_state(yoke_grad_scaler &scaler, const State &state);

// Returns the state of the averages: {"decay", "averages": [tensor, …]}.
Ref<State> state_of(const yoke_ema &ema);
void load_state(yoke_ema &ema, const State &state);

// Returns the state of a stream of random numbers: a uint8 tensor of 16 bytes, seed and offset. random_state_of()
// reads such a state.
Ref<State> state_of(RandomState at);
RandomState random_state_of(const State &state);

// Checks a schedule, a plain state: {"kind", its options, "base_lrs": [of each group], "last_step"}. Raises unless
// the state is complete and its numbers are in range. `groups` is the number of rates, -1: any number.
void check_schedule(const State &schedule, int64_t groups);
// Returns the learning rate of a group at a step of the schedule.
double schedule_lr(const State &schedule, int64_t step, size_t group);

}  // namespace yoke
