/*
 * fake.h: declarations for the fake driver (driver.c, a libcuda.so.1) and the fake runtime (runtime.cpp).
 *
 * The fakes do on host memory the work that CUDA's calls do on a GPU's memory. A call that CUDA would refuse is
 * refused: before cuInit, without a context, with a dead handle, or on foreign memory. Each call reads these settings
 * from the environment:
 *   FAKE_CUDA_VERSION   result of cuDriverGetVersion, default 13000
 *   FAKE_CUDA_DEVICES   compute capabilities of the devices: "9.0,7.5"; default a device of 9.0, "" for no device
 *   FAKE_CUDA_FAIL      failing calls, each with an error number: "cuInit=803,cudaMalloc=2"; "cudaMalloc@3=2" fails
 *                       the third call alone, counted from the start or from fake_reset()
 *   FAKE_CUDA_SLOW      "cuDevicePrimaryCtxRetain@2=5": the second call takes 5 seconds
 *   FAKE_CUDA_WORK_FAIL error of the next work, such as 700 for a kernel with a wrong address. The work's device is
 *                       then lost, as by all errors that CUDA calls sticky: every call on the device's context gives
 *                       the error until the process ends, and no work is done any more. FAKE_CUDA_FAIL concerns a
 *                       single call, except for a library's launch: there a sticky error counts as found by the
 *                       library, so the device is lost
 *   FAKE_CUDA_PENDING   an unread error from an earlier call: successful launches report this error, as
 *                       cudaGetLastError() does afterwards
 *   FAKE_CUDA_CAPTURE_MODE  global or thread: captures begin in this mode, regardless of the caller's mode, like
 *                       captures of another library in the process
 *   FAKE_CUBLASLT_VERSION  result of cublasLtGetVersion, default the header's version
 *   FAKE_CUBLASLT_ALGORITHMS  most algorithms that cuBLASLt finds for a product, default 10
 *   FAKE_CUBLASLT_UNFIT number of algorithms, the best first, that come with an unusable state, default 0
 *   FAKE_CUBLASLT_NO_SUMS  set: cuBLASLt has no algorithm that also sums rows (BGRADA, BGRADB)
 *   FAKE_CUBLASLT_MICROSECONDS  "20,9": length of a product by the first algorithm, the second, and so on, on the
 *                       clock of FAKE_CUDA_TICKS; the last number holds for all further algorithms
 *   FAKE_CUDNN_ENGINES  number of engines, at most five, of the fake cuDNN for a graph
 *   FAKE_CUDNN_MICROSECONDS  "20,9": length of a graph by each engine, as for cuBLASLt's algorithms
 *   FAKE_NCCL_VERSION   result of ncclGetVersion, default the header's version; the folder old_nccl has a library of
 *                       2.19, without later functions
 *   FAKE_NCCL_FAIL      "ncclAllReduce@2=3,ncclCommAbort=hang": as FAKE_CUDA_FAIL, with numbers of ncclResult_t;
 *                       `hang` never returns, `slow:0.5` waits so many seconds first. "ncclAllReduce#1@2" is the
 *                       second call by rank 1 of a communicator
 *   FAKE_NCCL_IN_PROGRESS  number of polls before a call of a non-blocking communicator is done, default 1; launches
 *                       of the call come after these polls
 *   FAKE_NCCL_ASYNC     "3@1=6": from the third collective, send or receive on, rank 1 of each communicator has an
 *                       asynchronous error, default ncclRemoteError
 *   FAKE_NCCL_STUCK     "1@3": from the third on, the kernels of rank 1 bring no data and do not end
 *   FAKE_NCCL_NO_WINDOWS  set: cards do not reach each other's memory; a window is registered with success, and null
 *   FAKE_NCCL_LATE      most milliseconds from a kernel's beginning to the earliest end, by chance
 *   FAKE_NCCL_ABORT_LATE  milliseconds by which kernels outlive the return of ncclCommAbort(), default 0
 *   FAKE_NCCL_LEAKS     1: at exit the fake reports communicators, windows, registrations and memory still held
 *   FAKE_CUDA_REGISTERS a file with the compiler's figures of kernels (tests/emu/registers.py writes the file). A
 *                       launch is refused if the launch asks for more registers than a multiprocessor has, or for
 *                       more threads than the bound. A launch of a kernel missing in the file is refused, too.
 *                       Default: no figures are known
 *   YOKE_EMU_RECORD     a file to which each launch, copy and fill of a stream appends a line of JSON: a kernel of
 *                       Yoke (tests/emu/record.h), or {"call": "cudaMemsetAsync"}. Kernels and calls of libraries then
 *                       do nothing; copies and fills do their work
 *   YOKE_EMU_RACES      1: blocks do not share pages (tests/emu/races.h); Yoke caches no blocks then
 *   YOKE_FAKE_SCENARIO  scenario of a machine with the cards for the devices, instead of FAKE_CUDA_DEVICES
 *                       (machine.h)
 *   FAKE_CUDA_MULTIPROCESSORS  of each device, default 132; with few multiprocessors, blocks take several turns
 *   FAKE_CUDA_PEERS     0: no device can reach the memory of another; default: each can
 *   FAKE_CUDA_UNSHARED  set: no device has chunks for other processes or network cards
 *   FAKE_CUDA_SEED      the order of queued work, within the order of streams and events
 *   FAKE_CUDA_TICKS     1: each piece of work takes a microsecond, whatever the clock says
 *   FAKE_CUDA_LATENCY   most ticks of delay, by chance, of the first work after a wait; default 0
 */
#ifndef YOKE_TESTS_FAKES_CUDA_FAKE_H
#define YOKE_TESTS_FAKES_CUDA_FAKE_H

#include <driver_types.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns the bytes of every device, unless a scenario says more, and the most bytes that a device gives:
 * FAKE_CUDA_MEMORY, in MiB. */
static inline size_t fake_memory(void)
{
    const char *const mebibytes = getenv("FAKE_CUDA_MEMORY");
    return mebibytes ? (size_t)atol(mebibytes) << 20 : (size_t)1 << 30;
}

/* Kinds of resources to be given back by a program. */
enum {
    FAKE_CONTEXTS,
    FAKE_PUSHED,
    FAKE_BLOCKS,
    FAKE_PINNED,
    FAKE_STREAMS,
    FAKE_EVENTS,
    FAKE_RANGES,
    FAKE_CHUNKS,
    FAKE_MAPS,
    FAKE_GRAPHS,
    FAKE_HANDLES, /* handles of libraries such as cuBLASLt */
    FAKE_KINDS,
    FAKE_SHAREABLE = FAKE_KINDS, /* chunks usable by other processes and network cards */
    FAKE_COUNTS
};

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Exported by the fake driver, for the other fakes and for tests; found in libcuda.so.1 with dlsym() ---------- */

/* Counts a call; returns the error number of a call that is to fail, else 0. */
int fake_fault(const char *call);
/* Counts a resource that was made (+1) or given back (-1). */
void fake_hold(int kind, int change);
/* Returns how much of a kind is held. */
int fake_held(int kind);
/* Returns "cuInit=1,cudaMalloc=3": the calls since the start or fake_reset(), in the order of the first of each. */
const char *fake_calls(void);
void fake_reset(void);
/* Loses a device to an error. An error of 0, or a device already lost, changes no state. Returns the error that lost
 * the device, or 0. */
int fake_lose(int device, int error);
/* Returns the device with the current context, or -1. */
int fake_current_device(void);

/* Work of a stream that waits for an outside event, such as a kernel's wait for peers. Such late work begins in the
 * stream's order. From then on any thread may ask whether the work is over. If so, the work ends. `begin` and `end`
 * return a CUDA error. */
struct fake_late {
    int (*begin)(void *);
    int (*is_over)(void *);
    int (*end)(void *);
    void (*drop)(void *);
};
#define FAKE_UNKNOWN (-2) /* memory of no device, and not pinned */

/* The fake runtime, for libraries not linked with the runtime. */
struct fake_runtime {
    /* Enqueues like fake_enqueue. Each library has a runtime of its own, so the module's runtime keeps no last error
     * of a library's calls. But if a library finds a context lost, the context is lost for all callers, until the
     * process ends. */
    cudaError_t (*enqueue)(const char *, cudaStream_t, int (*)(void *), void (*)(void *), void *,
                           const void *, size_t);
    /* Stands for a library's wait for the current device: captures on the device are lost, and then the call gives an
     * error. */
    int (*wait)(void);
    /* Stands for an action of a library, called potentially unsafe by CUDA, such as loading code: captures that
     * forbid the action are lost, and the call then fails. */
    int (*unsafe)(void);
    /* Adds to the length of the current work, on the clock of FAKE_CUDA_TICKS. */
    void (*spend)(int microseconds);
    /* Returns the bytes of a device still free for allocation. */
    size_t (*left)(int device);
    /* Gives late work to a stream of any device. A device does late work in the order of the calls, in all streams. A
     * thread of the runtime goes on with late work and its dependencies, so no thread of the program has to. Takes
     * `context` over as `enqueue` does. */
    cudaError_t (*enqueue_late)(int device, cudaStream_t, const struct fake_late *, void *context,
                                const void *words, size_t bytes);
    /* Goes on with late work at once. */
    void (*advance)(void);
    /* Tells whether a stream is being captured; -1 if the stream does not belong to the device. */
    int (*is_captured)(int device, cudaStream_t);
    /* Returns the device of a byte's memory, -1 for pinned memory, or FAKE_UNKNOWN. `left` gets the rest of the block
     * from there, or SIZE_MAX if the block is unknown. */
    int (*find)(const void *place, size_t *left);
    /* Give and take memory of a device in whole pages; cudaFree() refuses such memory. */
    cudaError_t (*allocate)(int device, void **place, size_t bytes);
    cudaError_t (*release)(void *place);
};
extern struct fake_runtime fake_runtime_calls;

/* ---- The fake runtime's, linked into the module ------------------------------------------------------------------ */

/* Adds work to the end of a stream: `work` returns a CUDA error number, `drop` frees the context. The call takes the
 * context over whether the call succeeds or not. The work uses the blocks to which pointers among `words` point. */
cudaError_t fake_enqueue(const char *call, cudaStream_t stream, int (*work)(void *),
                         void (*drop)(void *), void *context, const void *words, size_t bytes);

/* Returns the file of YOKE_EMU_RECORD, or NULL. */
FILE *fake_record(void);
/* Writes a call down. Returns 0 if there is no record. */
int fake_note(const char *call);

/* Returns why a kernel cannot be launched in blocks of so many threads, or success. Null is a kernel of a library. */
cudaError_t fake_resources(const void *kernel, size_t threads);

/* Visits every block of device and pinned memory, on behalf of running work. */
void fake_blocks(void (*visit)(void *list, void *place, size_t bytes), void *list);

/* Returns the end of the block of device or pinned memory that a byte lies in; NULL for any other memory. */
const void *fake_end_of_block(const void *place);

#ifdef __cplusplus
}
#endif

#endif
