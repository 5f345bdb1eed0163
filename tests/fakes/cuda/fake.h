/*
 * fake.h: what the fake driver (driver.c, a libcuda.so.1) and the fake runtime (runtime.cpp) share.
 *
 * They do on host memory what CUDA's calls do on a GPU's, and refuse calls that CUDA would refuse: before cuInit,
 * without a context, with a handle that is not live, on memory that is not theirs. The environment chooses how they
 * behave, at each call:
 *   FAKE_CUDA_VERSION   what cuDriverGetVersion tells, default 13000
 *   FAKE_CUDA_DEVICES   compute capabilities, one for each device: "9.0,7.5"; default one of 9.0, "" for none
 *   FAKE_CUDA_FAIL      calls that fail and with which number: "cuInit=803,cudaMalloc=2"; "cudaMalloc@3=2" fails the
 *                       third one alone, counted from the start or from fake_reset()
 *   FAKE_CUDA_WORK_FAIL  the error with which the next work that is done ends, as a kernel does that meets a wrong
 *                       address: 700. Its device is lost then, as by all errors that CUDA calls sticky: every call that
 *                       needs its context gives that error until the process ends, and no work is done any more. What
 *                       FAKE_CUDA_FAIL asks for is of that one call, but of a library's launch: there such an error is
 *                       one that the library found, so that the device is lost
 *   FAKE_CUDA_PENDING   an error that a call left and nobody read: launches that succeed tell it, as cudaGetLastError()
 *                       does behind them
 *   FAKE_CUDA_CAPTURE_MODE  global or thread: captures begin in that mode whatever is asked, as those of another
 *                       library in the process
 *   FAKE_CUBLASLT_VERSION  what cublasLtGetVersion tells, default that of the header
 *   FAKE_CUBLASLT_ALGORITHMS  how many it finds for a product at most, default 10
 *   FAKE_CUBLASLT_UNFIT how many of those, the best ones, come with a state that tells them unusable, default 0
 *   FAKE_CUBLASLT_MICROSECONDS  "20,9": how long a product takes by the first algorithm, the second, and so on, on the
 *                       clock of FAKE_CUDA_TICKS; the last number is that of all others
 *   FAKE_CUDNN_ENGINES  how many engines of its five the fake cuDNN has for a graph
 *   FAKE_CUDNN_MICROSECONDS  "20,9": how long a graph takes by each of them, as for cuBLASLt's algorithms
 *   FAKE_NCCL_VERSION   what ncclGetVersion tells, default that of the header; a library of 2.19, without what came
 *                       later, stands in the folder old_nccl
 *   FAKE_NCCL_FAIL      "ncclAllReduce@2=3,ncclCommAbort=hang": as FAKE_CUDA_FAIL, with numbers of ncclResult_t; `hang`
 *                       never returns, `slow:0.5` waits so many seconds first. "ncclAllReduce#1@2" is the second call
 *                       of one communicator's rank 1
 *   FAKE_NCCL_IN_PROGRESS  for how many polls a call is in progress of a communicator that does not block, default 1;
 *                       what it launches comes after them
 *   FAKE_NCCL_ASYNC     "3@1=6": from its third collective, send or receive on, rank 1 of each communicator has an
 *                       asynchronous error, default ncclRemoteError
 *   FAKE_NCCL_STUCK     "1@3": the kernels of rank 1 from its third one on bring nothing and do not end
 *   FAKE_NCCL_NO_WINDOWS   set: cards reach no memory of each other; a window is registered with success, and null
 *   FAKE_NCCL_LATE      up to how many milliseconds after its beginning a kernel ends at the earliest, by chance
 *   FAKE_NCCL_ABORT_LATE  for how many milliseconds kernels go on when ncclCommAbort() has returned, default 0
 *   FAKE_NCCL_LEAKS     1: communicators, windows, registrations and memory that are left are told at exit
 *   FAKE_CUDA_REGISTERS a file of what the compiler gave kernels (tests/emu/registers.py writes it): a launch that asks
 *   for
 *                       more registers than a multiprocessor has, or for more threads than its bound, is refused, and
 *                       so is one of a kernel that the file lacks. Default: nothing is known of kernels
 *   YOKE_EMU_RACES      1: blocks have whole pages to themselves (tests/emu/races.h); Yoke caches none then
 *   YOKE_FAKE_SCENARIO  the machine whose cards are the devices, instead of FAKE_CUDA_DEVICES (machine.h)
 *   FAKE_CUDA_MULTIPROCESSORS  of each device, default 132; with few of them, blocks take several turns
 *   FAKE_CUDA_PEERS     0: no device can reach the memory of another; default: each can
 *   FAKE_CUDA_UNSHARED  set: no device has chunks that other processes or network cards may use
 *   FAKE_CUDA_SEED      the order in which queued work is done, within what streams and events demand
 *   FAKE_CUDA_TICKS     1: each piece of work takes a microsecond, whatever the clock says
 *   FAKE_CUDA_LATENCY   up to how many ticks late the first work begins after a wait, by chance; default 0
 */
#ifndef YOKE_TESTS_FAKES_CUDA_FAKE_H
#define YOKE_TESTS_FAKES_CUDA_FAKE_H

#include <driver_types.h>
#include <stddef.h>
#include <stdlib.h>

/* Of every device, unless a scenario tells of more, and the most that is given of one: FAKE_CUDA_MEMORY, in MiB. */
static inline size_t fake_memory(void)
{
    const char *const mebibytes = getenv("FAKE_CUDA_MEMORY");
    return mebibytes ? (size_t)atol(mebibytes) << 20 : (size_t)1 << 30;
}

/* What a program must give back. */
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
    FAKE_HANDLES, /* of libraries: cuBLASLt's and their like */
    FAKE_KINDS,
    FAKE_SHAREABLE =
        FAKE_KINDS, /* of the chunks, those that other processes and network cards may use */
    FAKE_COUNTS
};

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Exported by the fake driver, for the other fakes and for tests: look them up in libcuda.so.1. --------------- */

/* Counts a call; gives the number with which it is to fail, else 0. */
int fake_fault(const char *call);
/* Something was made (+1) or given back (-1). */
void fake_hold(int kind, int change);
/* How much of a kind is held. */
int fake_held(int kind);
/* "cuInit=1,cudaMalloc=3": the calls since the start or fake_reset(), in the order of the first of each. */
const char *fake_calls(void);
void fake_reset(void);
/* Loses a device to an error, unless that is 0 or it is lost already; what it was lost to, or 0. */
int fake_lose(int device, int error);
/* The device whose context is current, or -1. */
int fake_current_device(void);

/* Work of a stream that waits for something from outside, such as a kernel that waits for its peers. It begins in its
 * turn. From then on any thread may ask whether it is over, until it is; then it ends. `begin` and `end` give a CUDA
 * error. */
struct fake_late {
    int (*begin)(void *);
    int (*is_over)(void *);
    int (*end)(void *);
    void (*drop)(void *);
};
#define FAKE_UNKNOWN (-2) /* memory that no device has and that is not pinned */

/* The fake runtime, for libraries that are not linked with it. */
struct fake_runtime {
    /* As fake_enqueue. Each library has a runtime of its own: the module's keeps no last error of what they do. But a
     * context that a library finds lost is lost for everybody, until the process ends. */
    cudaError_t (*enqueue)(const char *, cudaStream_t, int (*)(void *), void (*)(void *), void *,
                           const void *, size_t);
    /* What a library does that waits for the current device: captures on it are lost, and then it gives an error. */
    int (*wait)(void);
    /* What it does that CUDA calls potentially unsafe, as loading code is: the same for captures that forbid it. */
    int (*unsafe)(void);
    /* How long the work that is being done takes, on the clock of FAKE_CUDA_TICKS. */
    void (*spend)(int microseconds);
    /* Bytes of a device that can still be allocated. */
    size_t (*left)(int device);
    /* Gives late work to a stream of any device. A device does one such piece after the other, in the order in which
     * they came, whatever their streams. A thread of the runtime goes on with them and with what must be done before
     * them, so that no thread of the program has to. Takes `context` over as `enqueue` does. */
    cudaError_t (*enqueue_late)(int device, cudaStream_t, const struct fake_late *, void *context,
                                const void *words, size_t bytes);
    /* Goes on with late work at once. */
    void (*advance)(void);
    /* Tells whether a stream is being captured; -1 where it is none of the device's. */
    int (*is_captured)(int device, cudaStream_t);
    /* Returns whose memory a byte lies in: a device's, -1 for pinned memory, or FAKE_UNKNOWN. `left` gets how much of
     * the block follows, SIZE_MAX where that is not known. */
    int (*find)(const void *place, size_t *left);
    /* Give and take memory of a device in whole pages, which cudaFree() refuses. */
    cudaError_t (*allocate)(int device, void **place, size_t bytes);
    cudaError_t (*release)(void *place);
};
extern struct fake_runtime fake_runtime_calls;

/* ---- The fake runtime's, linked into the module ------------------------------------------------------------------ */

/* Work that a stream does in its turn: `work` gives a CUDA error number, `drop` frees its context. The call takes the
 * context over whether it succeeds or not. Words among `words` that point into device memory are what the work uses. */
cudaError_t fake_enqueue(const char *call, cudaStream_t stream, int (*work)(void *),
                         void (*drop)(void *), void *context, const void *words, size_t bytes);

/* Why a kernel cannot be launched in blocks of so many threads, or success. Null is a kernel of a library. */
cudaError_t fake_resources(const void *kernel, size_t threads);

/* Every block of device and pinned memory, for work that is being done. */
void fake_blocks(void (*visit)(void *list, void *place, size_t bytes), void *list);

/* The end of the block of device or pinned memory that a byte lies in; NULL for any other memory. */
const void *fake_end_of_block(const void *place);

#ifdef __cplusplus
}
#endif

#endif
