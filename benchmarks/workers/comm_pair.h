/*
 * comm_pair.h: frame of the workers of comm.py: two processes that repeat a collective together, and their times.
 *
 * A case is "HOW BYTES", as in "staged 26214400"; the answer is the seconds of the slower rank. The answer to "cpu 0"
 * is the processor seconds of both ranks, all their threads, for a repetition of the measurement before. Between
 * measurements both ranks sleep in a read.
 */
#ifndef COMM_PAIR_H
#define COMM_PAIR_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* This process's end of the pair. */
typedef struct pair_side {
    int rank, socket;
} pair_side;

/* `count` times all_reduce of `bytes` of float32, in the way that the worker calls `how`. */
typedef void (*pair_run)(void *user, const char *how, unsigned long long bytes, long count);

typedef struct pair_order {
    char how[16];
    unsigned long long bytes;
    long count;
} pair_order;

static inline void pair_check(int is_fine, const char *what)
{
    if (is_fine) return;
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}

static inline void pair_swap(const pair_side *side, const void *mine, void *theirs, size_t bytes)
{
    pair_check(write(side->socket, mine, bytes) == (ssize_t)bytes, "write");
    for (size_t got = 0; got < bytes;) {
        const ssize_t now = read(side->socket, (char *)theirs + got, bytes - got);
        if (now <= 0) exit(side->rank ? 0 : 1); /* the other one has ended */
        got += (size_t)now;
    }
}

/* Binds a rank and its threads to an allowed processor, if BENCH_BIND is set, as mpirun does with its ranks. */
static inline void pair_bind(int rank)
{
    cpu_set_t may, one;
    const char *asked = getenv("BENCH_BIND");
    if (!asked || !*asked) return;
    pair_check(sched_getaffinity(0, sizeof may, &may) == 0, "sched_getaffinity");
    int at = rank % CPU_COUNT(&may), cpu = 0;
    while (!CPU_ISSET(cpu, &may) || at-- > 0) ++cpu;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pair_check(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity");
}

/* Forks two ranks of a program; call it before any thread is made. */
static inline pair_side pair_fork(void)
{
    int sockets[2];
    pair_check(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "socketpair");
    const int rank = fork() == 0;
    close(sockets[1 - rank]);
    pair_bind(rank);
    const pair_side side = {rank, sockets[rank]};
    return side;
}

static inline double pair_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline double pair_cpu(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Rank 0's next order, on both ranks. 0: there is none. */
static inline int pair_next(const pair_side *side, pair_order *order)
{
    char line[128];
    pair_order other;
    memset(order, 0, sizeof *order);
    if (side->rank == 0 && fgets(line, sizeof line, stdin) &&
        sscanf(line, "%15s %llu %ld", order->how, &order->bytes, &order->count) != 3)
        order->count = 0;
    pair_swap(side, order, &other, sizeof other);
    if (side->rank) *order = other;
    return order->count > 0;
}

/* Measures until the end of the input. */
static inline void pair_serve(const pair_side *side, const char *about, pair_run run, void *user)
{
    enum { kWarm = 3 };
    pair_order order;
    double cpu = 0;
    if (side->rank == 0) printf("%s\n", about), fflush(stdout);
    while (pair_next(side, &order)) {
        double mine[2], theirs[2], wall = cpu;
        if (strcmp(order.how, "cpu") != 0) {
            run(user, order.how, order.bytes, kWarm);
            const double start = pair_now(), busy = pair_cpu();
            run(user, order.how, order.bytes, order.count);
            mine[0] = (pair_now() - start) / (double)order.count;
            mine[1] = (pair_cpu() - busy) / (double)order.count;
            pair_swap(side, mine, theirs, sizeof mine);
            wall = mine[0] > theirs[0] ? mine[0] : theirs[0];
            cpu = mine[1] + theirs[1];
        }
        if (side->rank == 0) printf("%.17g\n", wall), fflush(stdout);
    }
}

#endif /* COMM_PAIR_H */
