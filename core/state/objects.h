// objects.h: what the objects of a training are in a state: one layout for all languages, PyTorch's where it has one.
//
// The tensors of a state are the live ones. Who goes on from a state takes copies, and either all of it or nothing:
// what lacks, is left over, of another kind or out of range raises YOKE_E_VALUE or YOKE_E_TYPE with its place.
#pragma once

#include "core/base/random.h"
#include "core/optim/ema.h"
#include "core/optim/grad_scaler.h"
#include "core/optim/optimizer.h"
#include "core/state/tree.h"

namespace yoke {

// {"state": {NUMBER: {NAME: tensor, …}, …}, "param_groups": [{OPTION: value, …, "params": [NUMBER, …]}, …]}: parameters
// are numbered through all groups, those that were never stepped have no state.
Ref<State> state_of(const yoke_optimizer &optimizer);
// Also PyTorch's, whose further options must be off.
void load_state(yoke_optimizer &optimizer, const State &state);

// {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"}; {} of a disabled one. It waits
// for the device.
Ref<State> state_of(const yoke_grad_scaler &scaler);
void load_state(yoke_grad_scaler &scaler, const State &state);

// {"decay", "averages": [tensor, …]}
Ref<State> state_of(const yoke_ema &ema);
void load_state(yoke_ema &ema, const State &state);

// The random numbers of a thread, or of any other stream: a uint8 tensor of 16 bytes, seed and offset.
Ref<State> state_of(RandomState at);
RandomState random_state_of(const State &state);

// A schedule is a state from the first: {"kind", its options, "base_lrs": [of each group], "last_step"}. Raises unless
// it is whole and its numbers can be; `groups` says of how many rates, -1: of any number.
void check_schedule(const State &schedule, int64_t groups);
// The rate of a group at a step.
double schedule_lr(const State &schedule, int64_t step, size_t group);

}  // namespace yoke
