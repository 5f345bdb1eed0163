// Common declarations of the MPI engine: MPI's header, the core's table and failures.
//
// Contract: only files of this folder use MPI. A failure is reported once, with MPI's own text.
#pragma once

// The C++ bindings that old headers bring are not wanted.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include "core/backend/comm.h"
#include "kernels/common/combination.h"

namespace yoke::mpi {

using kernels::Combination;
using kernels::CombineFn;

// Set once by yoke_comm_get_v1, before any other entry can be called.
extern const yoke_host *g_host;

// Gives the host a formatted message and returns `status`.
yoke_status fail(yoke_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Reports the failure of a call of MPI and returns YOKE_E_COMM: "mpi: MPI_Iallgather failed: MPI_ERR_COMM: invalid
// communicator".
yoke_status fail_mpi(int code, const char *call);

// Returns the arithmetic of the best instruction set that this processor has.
CombineFn best_combine();

}  // namespace yoke::mpi
