// Declarations shared by all files of the CPU backend: the core's table, failures, threads and parameters.
//
// Contract
//  * All functions declared here are compiled once, in the baseline instruction set; the files in simd/ call them.
//    Inline code stands in simd/, inside namespace YOKE_ISA, so two builds of it never share a symbol.
//  * A kernel is a yoke_kernel_fn: it reads its launch record, never throws, and returns fail(...) if it fails.
#pragma once

#include <cstdint>

#include "kernels/common/combination.h"
#include "kernels/common/names.h"
#include "kernels/common/scratch.h"

namespace yoke::cpu {

// Set once by yoke_cpu_backend_get, before any other entry can be called.
extern const yoke_host *g_host;

// Gives the host a formatted message and returns `status`.
yoke_status fail(yoke_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Reports a failure such as "cpu: free of 4096 bytes failed: Invalid argument", with errno's text and number, and
// returns `status`. `what` is the text before "of".
yoke_status fail_errno(yoke_status status, const char *what, uint64_t bytes);

using kernels::Combination;
using kernels::CombineFn;
using kernels::dtype_name;
using kernels::op_name;

// Reports "softmax: x has dtype int64, which the cpu kernel does not take; cast it first" and returns YOKE_E_TYPE.
// Only an op with a wrong shape rule comes here.
yoke_status bad_dtype(const yoke_launch *launch, const char *operand, yoke_dtype dtype);

// ---- threads: one team for each process, made at the first need; a forked child makes a new team --------------------

// Returns the number of threads that a call of run_chunks may use; 1 inside a chunk.
int team_size();
// Returns the best number of chunks to cut work into. fine_chunks is for work that costs no time to cut. It gives
// equal numbers for each thread, and so many (up to `most`) that an early thread finds more work. team_chunks is for
// other work: one chunk a thread on a quiet machine. If other processes want the processors too, there are more
// chunks, so little work waits for a preempted thread.
int64_t fine_chunks(int64_t most);
int team_chunks();

// Calls fn(context, i, slot) for each i below count, on the calling thread and the rest of the team. Any thread may get
// any chunk, in any order: results may depend on i alone. Scratch may go by the slot, which no two chunks have at once
// and which is below `slots` (team_size() of before the call, or more) and below count. If another host thread has the
// team, the calling thread runs all chunks.
using ChunkFn = void (*)(void *context, int64_t index, int slot);
void run_chunks(int64_t count, ChunkFn fn, void *context, int slots);

// Marks the calling thread as part of a team: its calls run in this thread alone.
void enter_team();
// Ends the team's threads, unless another thread of the host program is using the team. Later work makes new threads.
void rest_threads();
void threads_after_fork();

using Scratch = kernels::Scratch<g_host>;

// The kernels of one instruction set.
struct KernelTable {
    const yoke_kernel_fn *kernels;  // YOKE_OP_COUNT entries; null if an op has no kernel
    const char *name;               // "AVX-512"
    CombineFn combine;              // the arithmetic of collectives
};

// Finds the kernels of the level in use: the best level of the CPU, or the level of YOKE_CPU_ISA ("base", "v3" or
// "v4"). Fails if the CPU or the build does not have the level, or if the name is unknown.
yoke_status select_kernels(const KernelTable **out);

}  // namespace yoke::cpu
