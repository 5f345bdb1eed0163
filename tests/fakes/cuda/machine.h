/*
 * machine.h: the devices of the fake driver: those of FAKE_CUDA_DEVICES, or those of a scenario.
 *
 * With YOKE_FAKE_SCENARIO (tests/fakes/edge), which is read once as CUDA reads its variables once, the devices are the
 * cards that NVIDIA's driver holds, counted as CUDA counts them: CUDA_VISIBLE_DEVICES chooses, CUDA_DEVICE_ORDER
 * orders, of MIG instances a process gets one. Memory is what the scenario tells; host memory stands behind what is
 * allocated.
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
    size_t total, used; /* memory; used by others */
    size_t chunks;      /* of it: what cuMemCreate has given to this process */
    int refuses;        /* why it gives no context, a CUresult: its compute mode */
};

/* Why cuInit fails on such a machine, a CUresult, or 0. */
int fake_machine_problem(void);
/* What cuDriverGetVersion tells. */
int fake_machine_version(void);
int fake_machine_count(void);
/* Exported by the fake driver, for the fake runtime. 0, or a CUresult where there is no such device. */
int fake_machine_device(int ordinal, struct fake_device *out);
/* The device whose chunk is mapped there, and to which devices it is open, a bit for each; -1 where none is. */
int fake_chunk_at(const void *place, uint64_t *open);

#ifdef __cplusplus
}
#endif
#endif
