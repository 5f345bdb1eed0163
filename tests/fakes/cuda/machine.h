/*
 * machine.h: the devices of the fake driver, either from FAKE_CUDA_DEVICES or from a scenario.
 *
 * YOKE_FAKE_SCENARIO (tests/fakes/edge) is read once, as CUDA reads its variables once. With a scenario, the devices
 * are the cards of NVIDIA's driver, counted as CUDA counts them: CUDA_VISIBLE_DEVICES chooses, CUDA_DEVICE_ORDER
 * orders, and a process gets a single MIG instance. The scenario sets the amount of memory; allocations take host
 * memory.
 */
#ifndef YOKE_TESTS_FAKES_CUDA_MACHINE_H
#define YOKE_TESTS_FAKES_CUDA_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FAKE_MAX_DEVICES 64

struct fake_device {
    char name[96];
    unsigned char uuid[16];
    int domain, bus, slot;
    int major, minor, multiprocessors;
    size_t total, used; /* memory; used by other processes */
    size_t chunks;      /* part of `total` that cuMemCreate has given to this process */
    int refuses;        /* reason to refuse a context, a CUresult: the compute mode */
};

/* Returns why cuInit fails on such a machine, a CUresult, or 0. */
int fake_machine_problem(void);
/* Returns the result of cuDriverGetVersion. */
int fake_machine_version(void);
int fake_machine_count(void);
/* Exported by the fake driver, for the fake runtime. 0, or a CUresult where there is no such device. */
int fake_machine_device(int ordinal, struct fake_device *out);
/* Returns the device of the chunk mapped at the place, or -1. `open` gets a bit for each device with access to the
 * chunk. */
int fake_chunk_at(const void *place, uint64_t *open);

#ifdef __cplusplus
}
#endif
#endif
