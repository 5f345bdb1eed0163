// This process in its MPI job. Yoke begins MPI if no other code has begun it, and then ends MPI at exit.
#pragma once

#include <string>

#include "kernels/mpi/detached_call.h"
#include "kernels/mpi/mpi.h"

namespace yoke::mpi {

// Joins the job. After YOKE_OK, MPI with threads is ready. MPI begins when all processes of the job begin it; this
// counts against the member's time, from `since` on. Fails if other code has begun MPI without threads, or has ended
// MPI.
yoke_status join_job(const yoke_comm_member &member, DetachedCall::Clock::time_point since);

// Returns whether MPI may be called: this process has joined the job, MPI has not ended, and the process is no forked
// child.
bool is_in_job();

// Returns the name of the job, as published by its launcher: all processes of the job have the same name, and no
// other job does. Returns "" if there is no name.
std::string job_name();

// Returns the name of the MPI library, such as "Open MPI v4.1.4".
std::string library_name();

// Notes that an operation begun with peers will never end. MPI_Finalize at exit then gets a time limit.
void note_abandoned();
void note_fork();

}  // namespace yoke::mpi
