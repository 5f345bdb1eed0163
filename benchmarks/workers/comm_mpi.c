/* Worker of comm.py, started by mpirun: MPI_Allreduce in place between two processes. The ranks take their orders
 * over a separate socket, because a wait in MPI would burn a processor during other measurements. */
#include "comm_pair.h"

#include <mpi.h>
#include <sys/un.h>

enum { kMost = 32 << 20 };

static void run(void *user, const char *how, unsigned long long bytes, long count)
{
    (void)how;
    pair_check(bytes <= kMost, "a case above 32 MiB");
    for (; count > 0; --count)
        MPI_Allreduce(MPI_IN_PLACE, user, (int)(bytes / sizeof(float)), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
}

/* Both ranks on one abstract socket, named after rank 0's process. */
static pair_side meet(void)
{
    pair_side side;
    int listener = -1, process = (int)getpid();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    MPI_Comm_rank(MPI_COMM_WORLD, &side.rank);
    MPI_Bcast(&process, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "bench-comm-mpi-%d", process);
    side.socket = socket(AF_UNIX, SOCK_STREAM, 0);
    if (side.rank == 0) {
        listener = side.socket;
        pair_check(bind(listener, (struct sockaddr *)&address, sizeof address) == 0, "bind");
        pair_check(listen(listener, 1) == 0, "listen");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (side.rank == 0) {
        side.socket = accept(listener, NULL, NULL);
        close(listener);
    } else {
        pair_check(connect(side.socket, (struct sockaddr *)&address, sizeof address) == 0,
                   "connect");
    }
    return side;
}

int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Init(&argc, &argv);
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = '\0';
    const pair_side side = meet();
    float *data = calloc(1, kMost);
    pair_check(data != NULL, "calloc");
    pair_serve(&side, version, run, data);
    free(data);
    MPI_Finalize();
    return 0;
}
