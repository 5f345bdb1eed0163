/* Prints the seconds of the first inventory of a process, which every tool pays once. */
#define _POSIX_C_SOURCE 199309L

#include "yoke/yoke.h"

#include <stdio.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(void)
{
    yoke_inventory *inventory = NULL;
    const double start = now();
    if (yoke_inventory_take(&inventory)) {
        fprintf(stderr, "%s\n", yoke_last_error()->message);
        return 1;
    }
    const double seconds = now() - start;
    const int32_t cards = yoke_inventory_count(inventory);
    yoke_inventory_release(inventory);
    if (cards != 8) {
        fprintf(stderr, "%d cards were found; 8 are expected\n", cards);
        return 1;
    }
    printf("%.9f\n", seconds);
    return 0;
}
