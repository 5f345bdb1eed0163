// run.h: the only path of every op call, from C, from a script through yoke_op_invoke, or from the core itself.
//
// The steps in order: cast under autocast, check arguments and devices, infer the results' shapes (with the casts of
// promotion), allocate the results, launch the backend's kernel, record on the tape. No op does any of these steps
// itself.
#pragma once

#include "core/ops/args.h"
#include "core/ops/op_def.h"

#include <array>

namespace yoke {

// Runs an op. `args` has the op's arg_count entries, absent defaults filled in; shape rules overwrite entries. Writes
// the op's returned_count results, each an owned reference, to `results`.
void run(int32_t op, yoke_arg *args, Tensor *results);

// Runs an op as run() does and returns its first result, for the callers in ops.h.
inline Tensor run_one(int32_t op, yoke_arg *args)
{
    Tensor results[kMaxResults];
    run(op, args, results);
    return std::move(results[0]);
}

// Runs an op with several returned results, and returns them.
template <size_t kCount>
std::array<Tensor, kCount> run_many(int32_t op, yoke_arg *args)
{
    std::array<Tensor, kCount> out;
    Tensor results[kMaxResults];
    run(op, args, results);
    for (size_t i = 0; i < kCount; ++i) out[i] = std::move(results[i]);
    return out;
}

// Runs an op with a list of results, and returns the list.
std::vector<Tensor> run_list(int32_t op, yoke_arg *args);

// Returns the number of results of run_list, without making them. Raises YOKE_E_VALUE beyond kMaxListed: a view of a
// single element may have an axis of any length, and a list of this length would fill the machine's memory.
int64_t count_list(int32_t op, yoke_arg *args);
constexpr int64_t kMaxListed = int64_t{1} << 24;

// Raises unless argument `arg` of the op takes `value`. Replaces an absent value by the default, and converts a
// compatible kind to the exact kind (an INT for a float). For yoke_op_invoke.
void check_arg(const OpDef &op, int arg, yoke_arg &value);

}  // namespace yoke
