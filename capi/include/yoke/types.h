/*
 * yoke/types.h: types, numbers and attributes of all other public headers.
 *
 * Conventions of the whole API (all in yoke.h):
 *   - yoke_status is int32_t; 0 is success; details of a failure: yoke_last_error().
 *   - Handles are opaque and reference counted; `out` parameters come last and are NULL after a failure.
 *   - Structs with possible later fields begin with uint32_t struct_size; the caller sets it to sizeof.
 *   - No C enum, bool, long, padding or bit-field stands in a public struct.
 */
#ifndef YOKE_TYPES_H
#define YOKE_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "yoke/dtypes.h"

#if defined(__GNUC__)
#define YOKE_API __attribute__((visibility("default")))
#else
#define YOKE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. The library's own is yoke_version(). A major step breaks the ABI. */
#define YOKE_VERSION_MAJOR 0
#define YOKE_VERSION_MINOR 1
#define YOKE_VERSION_PATCH 0

/* The most axes a tensor may have. */
#define YOKE_MAX_NDIM 16
/* Maximum of ranks that are threads of one process or are started together on one machine; maximum of machines. */
#define YOKE_MAX_RANKS 1024
#define YOKE_MAX_NODES 65536

/* ---- Status codes: fixed numbers, never reused ------------------------------------------------ */

typedef int32_t yoke_status;

#define YOKE_OK 0            /* success */
#define YOKE_E_VALUE 1       /* an argument has a value that cannot be used */
#define YOKE_E_TYPE 2        /* an argument has the wrong type or dtype */
#define YOKE_E_INDEX 3       /* an index or axis is out of range */
#define YOKE_E_CLOSED 4      /* a handle was used after it was closed */
#define YOKE_E_STATE 5       /* a call came in the wrong order */
#define YOKE_E_UNSUPPORTED 6 /* this backend or build cannot do it */
#define YOKE_E_OOM 7         /* no memory on the device or the machine */
#define YOKE_E_UNAVAILABLE 8 /* the device cannot be used; the message says why */
#define YOKE_E_DEVICE_LOST 9 /* the device stopped answering */
#define YOKE_E_TIMEOUT 10    /* a deadline passed */
#define YOKE_E_CANCELLED 11  /* the caller cancelled it */
#define YOKE_E_COMM 12       /* a collective failed */
#define YOKE_E_CHECKPOINT 13 /* recomputation disagreed with the first run */
#define YOKE_E_IO 14         /* a file or socket could not be read or written */
#define YOKE_E_FORKED 15     /* a device call in a forked child */
#define YOKE_E_INTERNAL 16   /* defect in Yoke: please report it */

/* ---- Levels of the log ---------------------------------------------------------------------------- */

#define YOKE_LOG_ERROR 0
#define YOKE_LOG_WARN 1
#define YOKE_LOG_INFO 2
#define YOKE_LOG_DEBUG 3

/* ---- How the tensors of several ranks become one ----------------------------------------------------- */

#define YOKE_REDUCE_SUM 0
#define YOKE_REDUCE_PROD 1
#define YOKE_REDUCE_MIN 2
#define YOKE_REDUCE_MAX 3
#define YOKE_REDUCE_AVG 4

/* ---- Handles ------------------------------------------------------------------------------------ */

typedef struct yoke_device yoke_device;       /* device; lives as long as the library */
typedef struct yoke_tensor yoke_tensor;       /* a strided view of a storage */
typedef struct yoke_optimizer yoke_optimizer; /* an optimizer with its state */

/* A stream of random numbers in the program's memory: its seed, and how much of the stream was drawn, 0 at the start.
 * A random op with a generator draws there instead of from the thread's stream, and moves `offset` on. Several threads
 * may draw from a generator. */
typedef struct yoke_generator {
    uint64_t seed;
    uint64_t offset;
} yoke_generator;

/* Called exactly once when Yoke no longer needs `user`. No lock is held; any thread. */
typedef void (*yoke_drop_fn)(void *user);

/* ---- Values --------------------------------------------------------------------------------------
 * Tagged value: type of scalar parameters and of yoke_op_invoke's arguments. 16 bytes. */

#define YOKE_ARG_NONE 0      /* absent optional */
#define YOKE_ARG_TENSOR 1    /* v.tensor */
#define YOKE_ARG_BOOL 2      /* v.i, 0 or 1 */
#define YOKE_ARG_INT 3       /* v.i; a dtype too */
#define YOKE_ARG_FLOAT 4     /* v.f */
#define YOKE_ARG_INTS 5      /* v.ints, count of them */
#define YOKE_ARG_TENSORS 6   /* v.tensors, count of them */
#define YOKE_ARG_STRING 7    /* v.string, UTF-8, NUL-terminated */
#define YOKE_ARG_DEVICE 8    /* v.device */
#define YOKE_ARG_GENERATOR 9 /* v.generator */
#define YOKE_ARG_FLOATS 10   /* v.floats, count of them */

typedef struct yoke_arg {
    int32_t kind;  /* YOKE_ARG_* */
    int32_t count; /* length of a list, else 0 */
    union {
        yoke_tensor *tensor;
        int64_t i;
        double f;
        const int64_t *ints;
        const double *floats;
        yoke_tensor *const *tensors;
        const char *string;
        yoke_device *device;
        yoke_generator *generator;
    } v;
} yoke_arg;

/* A script scalar is a yoke_arg of kind BOOL, INT or FLOAT. It is weak in type promotion: it takes the dtype of the
 * tensors beside it unless its kind is higher (int with float). */
typedef yoke_arg yoke_scalar;

/* ---- The last failure on the calling thread ----------------------------------------------------- */

typedef struct yoke_error {
    uint32_t struct_size;
    yoke_status status;
    const char *message;            /* call, problem, both values, and the remedy; UTF-8 */
    const char *device;             /* "cpu", "cuda:1" or "" */
    const char *call;               /* the C function that failed, "yoke_softmax" */
    int64_t native_code;            /* the driver's or system's own number, 0 if none */
    const struct yoke_error *cause; /* earlier failure that caused this failure, or NULL */
} yoke_error;

#ifdef __cplusplus
}
#endif
#endif /* YOKE_TYPES_H */
