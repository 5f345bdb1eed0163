// This process in its MPI job: begun where nobody has begun it, ended at exit by who began it.
#pragma once

#include <string>

#include "kernels/mpi/detached_call.h"
#include "kernels/mpi/mpi.h"

namespace yoke::mpi {

// MPI with threads is there when this returns OK. MPI begins when all processes of the job begin it, for which the
// member's time counts, from `since` on. Refuses a process in which somebody else has begun it without threads, or has
// ended it.
yoke_status join_job(const yoke_comm_member &member, DetachedCall::Clock::time_point since);

// Whether MPI may be called: it has been begun and not ended, and this process is no forked child.
bool is_in_job();

// A name that all processes of a job have alike and no other job has, as far as whoever launched it tells one; "".
std::string job_name();

// "Open MPI v4.1.4".
std::string library_name();

// Called where something that was begun with peers will never end: MPI_Finalize at exit then gets a bounded time.
void note_abandoned();
void note_fork();

}  // namespace yoke::mpi
