/*
 * backend.h: THE contract between Yoke's core and a backend (cpu, cuda, sim, …).
 *
 * A backend is a C table of functions. The core calls only these functions, and does not know the implementation. The
 * contract suite in tests/backend runs the same tests over every backend.
 *
 * Rules for every entry
 *   - Returns YOKE_OK or a status. On failure, the entry first calls host->set_error once with the native code and a
 *     message naming the attempted action. Out parameters stay untouched. No entry throws, aborts, exits or prints.
 *   - Entries are safe from any thread. The core never calls an entry while it holds a lock needed by an entry.
 *   - A null entry means "this backend does not support it"; the core raises YOKE_E_UNSUPPORTED with the entry's name.
 *     The entries of a group (VMM, pinned host memory) are all present or all null.
 *   - Work is ordered by streams. A stream is an opaque pointer; NULL is the device's default stream. A backend that
 *     runs work at once in the caller (cpu) has only the default stream's semantics: every stream is already idle.
 *   - Strides count elements and may be zero or negative. Sizes and offsets count bytes.
 */
#ifndef YOKE_CORE_BACKEND_BACKEND_H
#define YOKE_CORE_BACKEND_BACKEND_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Steps with every change of a struct in this header or comm.h; the core refuses a module with another number. */
#define YOKE_BACKEND_ABI 13

/* ---- Services of the core for a backend ------------------------------------------------------------- */

/* Optional request: if no free block is at hand, the request is refused. The call does not wait, does not call
 * functions of the host program, and does not count as an out-of-memory. */
#define YOKE_SCRATCH_OPTIONAL 1u

typedef struct yoke_host {
    uint32_t struct_size;
    uint32_t abi;
    /* Records the calling thread's failure and returns `status`, so that `return host->set_error(…)` reads well. */
    yoke_status (*set_error)(yoke_status status, int64_t native_code, const char *message);
    void (*log)(int32_t level, const char *message);
    /* Returns a configuration value ("YOKE_NUM_THREADS"), or NULL; borrowed, valid for the life of the library. */
    const char *(*config)(const char *key);
    /* Returns the number of threads that CPU work of the calling thread may use: 1 inside a worker. */
    int32_t (*num_threads)(void);
    /* Allocates scratch from the caching allocator, ordered on the stream: the backend may call scratch_free right
     * after launching the kernel. `flags`: YOKE_SCRATCH_. */
    yoke_status (*scratch_alloc)(void *device, uint64_t bytes, void *stream, uint32_t flags,
                                 void **out);
    void (*scratch_free)(void *device, void *pointer, void *stream);
} yoke_host;

/* ---- Launch ------------------------------------------------------------------------------------------- */

#define YOKE_OPERAND_READ 1u
#define YOKE_OPERAND_WRITE 2u
#define YOKE_OPERAND_SCALAR \
    4u /* a script scalar: the value is in `immediate`, already of dtype `dtype` */
#define YOKE_OPERAND_CONTIGUOUS 8u /* row-major without gaps */

/* Flags of a launch: permissions of the host program. A backend ignores a flag without use for the backend. */
#define YOKE_LAUNCH_TF32 1u                   /* products of f32 may round their factors to TF32 */
#define YOKE_LAUNCH_CUDNN_OFF 2u              /* own kernels alone; cuDNN is not even looked for */
#define YOKE_LAUNCH_CUDNN_BENCHMARK 4u        /* cuDNN's quickest plan, as measured */
#define YOKE_LAUNCH_CUDNN_NONDETERMINISTIC 8u /* sums of cuDNN's may come in any order */
#define YOKE_LAUNCH_DETERMINISTIC 16u         /* nothing that times or chance decide */

/* Tensor of a launch. An absent optional tensor has flags 0 and data NULL. */
typedef struct yoke_operand {
    void *
        data; /* the first element; of a scalar, the address of `immediate`; unspecified if numel is 0 */
    const int64_t *shape;   /* ndim of them; borrowed for the call */
    const int64_t *strides; /* in elements */
    int64_t numel;
    int32_t ndim;
    yoke_dtype dtype;
    uint32_t flags; /* YOKE_OPERAND_* */
    uint32_t reserved;
    const void *begin; /* the bytes that may be touched: [begin, begin + bytes) */
    uint64_t bytes;
    uint64_t immediate; /* raw bits, in the low bytes */
} yoke_operand;

/*
 * Single launch. The operands are the op's tensors in the order of the op's line in ops.def, lists laid out in place,
 * followed by the results. The parameters are the op's other arguments in the same order, after the shape rule has
 * settled them: axes are non-negative and in range, absent values are filled in, sizes agree. Kernels may rely on all
 * these facts. Backends with deferred execution copy all data needed later: the record and the memory behind its
 * pointers live only for the call.
 */
typedef struct yoke_launch {
    uint32_t struct_size;
    int32_t op; /* YOKE_OP_* of ops.inc */
    const yoke_operand *operands;
    const yoke_arg *params;
    int32_t operand_count;
    int32_t param_count;
    void *device; /* the backend's own device */
    void *stream;
    double work; /* floating-point operations, or bytes moved: the cost column of ops.def */
    /* Device memory with a number to add to the parameter `offset` of an op that draws random numbers. Set in a
     * launch captured for a graph, else NULL. */
    const int64_t *random_base;
    /* Settings of the launch; a graph replays the launch with the settings of the capture. The cuDNN settings are 0
     * if the cost is in bytes. */
    uint32_t flags;           /* YOKE_LAUNCH_* */
    uint32_t benchmark_limit; /* how many plans of cuDNN's are measured; 0: all */
    uint64_t workspace_limit; /* bytes that a plan of cuDNN may use beside its operands */
} yoke_launch;

typedef yoke_status (*yoke_kernel_fn)(const yoke_launch *launch);

/* ---- Devices -------------------------------------------------------------------------------------------- */

typedef struct yoke_backend_device_info {
    uint32_t struct_size;
    int32_t index;
    char name[128];
    char uuid[64]; /* "" if absent */
    char pci[32];
    uint64_t total_memory; /* bytes */
    int32_t multiprocessors;
    int32_t cc_major, cc_minor; /* compute capability, 0.0 if absent */
    uint32_t alignment;         /* guaranteed by `alloc`, a power of two */
    uint32_t matrix_dtypes; /* bit d: has units that multiply matrices of dtype d faster than f32 */
    uint32_t reserved;
} yoke_backend_device_info;

/* Directions of a copy. Both sides of DEVICE are the same device; PEER crosses devices of one backend. */
#define YOKE_COPY_HOST_TO_DEVICE 1
#define YOKE_COPY_DEVICE_TO_HOST 2
#define YOKE_COPY_DEVICE 3
#define YOKE_COPY_PEER 4

#define YOKE_EVENT_TIMING 1u

/* An engine of collectives: core/backend/comm.h. */
typedef struct yoke_backend_comm yoke_backend_comm;

/* ---- The table ------------------------------------------------------------------------------------------- */

typedef struct yoke_backend {
    uint32_t struct_size;
    uint32_t abi;           /* YOKE_BACKEND_ABI */
    uint64_t op_table_hash; /* YOKE_OP_TABLE_HASH of ops.inc: kernels are found by op number */
    const char *kind;       /* "cpu" */

    /* Counts, opens, closes, describes and synchronizes devices. Without devices, device_count succeeds with 0;
     * why_unavailable then writes a sentence with the remedy, cut to `capacity` with its NUL. All devices of a kind
     * are opened together. Therefore open and info are cheap, and the first other call pays the cost of a device. A
     * closed device may be opened again. A device outlives all objects made on it. synchronize: all streams. */
    yoke_status (*device_count)(int32_t *count);
    void (*why_unavailable)(char *text, uint64_t capacity);
    yoke_status (*device_open)(int32_t index, void **device);
    void (*device_close)(void *device);
    yoke_status (*device_info)(void *device, yoke_backend_device_info *info);
    yoke_status (*device_synchronize)(void *device);

    /* Allocates and frees plain memory. alloc never returns NULL with YOKE_OK; `bytes` is not 0; memory is not
     * cleared. free accepts only what alloc gave, once; work that uses the block has finished. A shortage is
     * YOKE_E_OOM. mem_info: the device's memory. */
    yoke_status (*alloc)(void *device, uint64_t bytes, void **pointer);
    yoke_status (*free)(void *device, void *pointer, uint64_t bytes);
    yoke_status (*mem_info)(void *device, uint64_t *free_bytes, uint64_t *total_bytes);

    /* Allocates and frees pinned host memory: reachable by the processor, and fast to copy from and to the device. */
    yoke_status (*host_alloc)(void *device, uint64_t bytes, void **pointer);
    yoke_status (*host_free)(void *device, void *pointer, uint64_t bytes);

    /* Manages virtual memory: reserves a range of addresses, creates physical chunks, maps them into it. Sizes are
     * multiples of the granularity. A chunk is mapped at one place at a time; an unmapped range faults or fails,
     * never reads stale data of another chunk. Contents stay with the chunk across unmap and map. */
    yoke_status (*vmm_granularity)(void *device, uint64_t *bytes);
    yoke_status (*vmm_reserve)(void *device, uint64_t bytes, void **address);
    yoke_status (*vmm_release)(void *device, void *address, uint64_t bytes);
    yoke_status (*vmm_create)(void *device, uint64_t bytes, uint64_t *chunk);
    yoke_status (*vmm_destroy)(void *device, uint64_t chunk);
    yoke_status (*vmm_map)(void *device, void *address, uint64_t bytes, uint64_t chunk);
    yoke_status (*vmm_unmap)(void *device, void *address, uint64_t bytes);

    /* Creates, destroys, awaits and queries streams. Higher priority numbers run first where the device knows
     * priorities. query: *idle is 1 when all work given so far has finished. An asynchronous failure surfaces here as
     * its status, YOKE_E_DEVICE_LOST included. */
    yoke_status (*stream_create)(void *device, int32_t priority, void **stream);
    yoke_status (*stream_destroy)(void *device, void *stream);
    yoke_status (*stream_synchronize)(void *device, void *stream);
    yoke_status (*stream_query)(void *device, void *stream, int32_t *idle);

    /* Creates, destroys, records, awaits and queries events. An event that was never recorded counts as reached.
     * elapsed wants two recorded events with TIMING. */
    yoke_status (*event_create)(void *device, uint32_t flags, void **event);
    yoke_status (*event_destroy)(void *device, void *event);
    yoke_status (*event_record)(void *device, void *event, void *stream);
    yoke_status (*event_wait)(void *device, void *event,
                              void *stream); /* the stream waits; the caller does not */
    yoke_status (*event_query)(void *device, void *event, int32_t *reached);
    yoke_status (*event_synchronize)(void *device, void *event);
    yoke_status (*event_elapsed)(void *device, void *start, void *end, double *seconds);

    /* Copies and fills plain bytes, ordered on the stream. Ranges do not overlap. For PEER, `device` owns dst. */
    yoke_status (*copy)(void *device, void *dst, const void *src, uint64_t bytes, int32_t direction,
                        void *stream);
    yoke_status (*fill)(void *device, void *dst, uint8_t value, uint64_t bytes, void *stream);

    /* Kernels by op number; a null one is reported as "cuda has no kernel for <op>". `launch`, where it is not null,
     * is called instead of the kernel itself and decides when and how the kernel runs (simulation, capture). */
    const yoke_kernel_fn *kernels;
    int32_t kernel_count;
    int32_t reserved;
    yoke_status (*launch)(const yoke_launch *launch, yoke_kernel_fn kernel);

    /* Captures, launches and destroys graphs: a group of entries. Work given to the stream between begin and end does
     * not run; end makes a graph of the work. Each call of launch runs the whole graph. Memory named by the work
     * stays in place meanwhile. A failed capture is over when end has returned its status. If these entries are null,
     * the core keeps the launches. `flags` are the probable flags of the launches, for preparations before the
     * capture. */
    yoke_status (*graph_begin)(void *device, void *stream, uint32_t flags);
    yoke_status (*graph_end)(void *device, void *stream, void **graph);
    yoke_status (*graph_launch)(void *device, void *graph, void *stream);
    yoke_status (*graph_destroy)(void *device, void *graph);

    /* Collectives, or NULL. */
    const yoke_backend_comm *comm;

    /* Looks now for an optional library called by kernels, such as "cudnn". `version` is a number in the library's
     * own form, or 0; if 0, `why` gives the reason as in why_unavailable. YOKE_E_UNSUPPORTED for another name. Or
     * NULL. */
    yoke_status (*engine)(const char *name, int64_t *version, char *why, uint64_t capacity);

    /* Returns engines and versions in a line: "oneDNN 2.6.3; AVX-512". Borrowed. */
    const char *(*build_info)(void);

    /* Runs in a forked child: from then on, the child's copy may only use what needs no driver. */
    void (*after_fork)(void);

    /* Releases unused resources kept for later calls, such as threads, or NULL. Resources in use stay. */
    void (*rest)(void);
} yoke_backend;

/* Only symbol of a backend module: gives the table. Refuses another `host->abi` with YOKE_E_UNSUPPORTED. */
typedef yoke_status (*yoke_backend_get_fn)(const yoke_host *host, const yoke_backend **out);
#define YOKE_BACKEND_SYMBOL "yoke_backend_get_v1"

#ifdef __cplusplus
}
#endif
#endif /* YOKE_CORE_BACKEND_BACKEND_H */
