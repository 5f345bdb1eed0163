/* Fake libcuda.so.1 for tests: Yoke's own driver calls, except calls of virtual memory (virtual.c). See fake.h. */
#include "driver.h"

#include "fake.h"
#include "machine.h"

#include <cuda.h>
#include <cudaProfiler.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

EXPORT struct fake_runtime fake_runtime_calls;

#define MAX_DEPTH 16
#define MAX_CALLS 192

struct CUctx_st {
    int device, retained;
};
static struct CUctx_st contexts[FAKE_MAX_DEVICES];
static int initialised;
static __thread CUcontext stack[MAX_DEPTH];
static __thread int depth;

/* ---- Questions and orders of tests to the fakes ------------------------------------------------------------------ */

static struct {
    char name[48];
    int count;
} calls[MAX_CALLS];
static pthread_mutex_t calls_mutex = PTHREAD_MUTEX_INITIALIZER;
static int held[FAKE_COUNTS];

/* Returns how often a call was made, this time included. */
static int count_call(const char *call)
{
    unsigned place = 0;
    int count = 0;
    for (const char *letter = call; *letter; ++letter) place = place * 31 + (unsigned char)*letter;
    pthread_mutex_lock(&calls_mutex);
    for (int probe = 0; probe < MAX_CALLS; ++probe, ++place) {
        place %= MAX_CALLS;
        if (calls[place].count == 0)
            snprintf(calls[place].name, sizeof calls[place].name, "%s", call);
        else if (strcmp(calls[place].name, call) != 0)
            continue;
        count = ++calls[place].count;
        break;
    }
    pthread_mutex_unlock(&calls_mutex);
    return count;
}

/* Sleeps if FAKE_CUDA_SLOW names this call. */
static void be_slow(const char *call, size_t length, int count)
{
    const char *slow = getenv("FAKE_CUDA_SLOW");
    int which = 0, seconds = 0;
    if (slow && strncmp(slow, call, length) == 0 &&
        sscanf(slow + length, "@%d=%d", &which, &seconds) == 2 && which == count)
        sleep((unsigned)seconds);
}

EXPORT int fake_fault(const char *call)
{
    const char *list = getenv("FAKE_CUDA_FAIL");
    const size_t length = strlen(call);
    const int count = count_call(call);
    be_slow(call, length, count);
    while (list && *list) {
        int number = 0, which = 0;
        if (strncmp(list, call, length) == 0) {
            if (sscanf(list + length, "=%d", &number) == 1) return number;
            if (sscanf(list + length, "@%d=%d", &which, &number) == 2 && which == count)
                return number;
        }
        list = strchr(list, ',');
        if (list) ++list;
    }
    return 0;
}

EXPORT void fake_hold(int kind, int change)
{
    __atomic_fetch_add(&held[kind], change, __ATOMIC_RELAXED);
}

EXPORT int fake_held(int kind)
{
    return __atomic_load_n(&held[kind], __ATOMIC_RELAXED);
}

EXPORT const char *fake_calls(void)
{
    static char text[MAX_CALLS * 64];
    size_t used = 0;
    pthread_mutex_lock(&calls_mutex);
    text[0] = 0;
    for (int i = 0; i < MAX_CALLS; ++i)
        if (calls[i].count)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s=%d", used ? "," : "",
                                     calls[i].name, calls[i].count);
    pthread_mutex_unlock(&calls_mutex);
    return text;
}

EXPORT void fake_reset(void)
{
    pthread_mutex_lock(&calls_mutex);
    memset(calls, 0, sizeof calls);
    pthread_mutex_unlock(&calls_mutex);
}

EXPORT int fake_current_device(void)
{
    return depth ? stack[depth - 1]->device : -1;
}

EXPORT int fake_lose(int device, int error)
{
    static int lost[FAKE_MAX_DEVICES];
    int known = 0;
    if (device < 0) return 0;
    __atomic_compare_exchange_n(&lost[device], &known, error, 0, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    return known ? known : error;
}

/* Ends a call if the call is to fail, or comes before cuInit. */
#define ENTER(call)                                          \
    do {                                                     \
        const int fault_ = fake_fault(call);                 \
        if (fault_) return (CUresult)fault_;                 \
        if (!initialised) return CUDA_ERROR_NOT_INITIALIZED; \
    } while (0)
/* Ends a call as ENTER does, and if no context is current. */
#define ENTER_CONTEXT(call)                            \
    do {                                               \
        ENTER(call);                                   \
        if (!depth) return CUDA_ERROR_INVALID_CONTEXT; \
    } while (0)

/* Ends a call as ENTER does, and if the current device is lost. */
CUresult fake_begin(const char *call)
{
    ENTER(call);
    return (CUresult)fake_lose(fake_current_device(), 0);
}

/* ---- Starting, and the devices ----------------------------------------------------------------------------------- */

EXPORT CUresult cuInit(unsigned flags)
{
    const int fault = fake_fault("cuInit");
    if (fault) return (CUresult)fault;
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    if (fake_machine_problem()) return (CUresult)fake_machine_problem();
    if (fake_machine_count() == 0) return CUDA_ERROR_NO_DEVICE;
    initialised = 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    const int fault = fake_fault("cuDriverGetVersion");
    if (fault) return (CUresult)fault;
    *version = fake_machine_version();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **name)
{
    static __thread char text[32];
    snprintf(text, sizeof text, "FAKE_ERROR_%d", (int)error);
    *name = text;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **text)
{
    (void)error;
    *text = "a failure that the test asked for";
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
    ENTER("cuDeviceGetCount");
    *count = fake_machine_count();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    ENTER("cuDeviceGet");
    if (ordinal < 0 || ordinal >= fake_machine_count()) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    struct fake_device found;
    ENTER("cuDeviceGetName");
    const CUresult wrong = (CUresult)fake_machine_device(device, &found);
    if (!wrong) snprintf(name, (size_t)length, "%s", found.name);
    return wrong;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    struct fake_device found;
    ENTER("cuDeviceGetAttribute");
    const CUresult wrong = (CUresult)fake_machine_device(device, &found);
    if (wrong) return wrong;
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        *value = found.major;
    else if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
        *value = found.minor;
    else if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        *value = found.multiprocessors;
    else if (attribute == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED ||
             attribute == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED)
        *value = !getenv("FAKE_CUDA_UNSHARED");
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    struct fake_device found;
    ENTER("cuDeviceTotalMem");
    const CUresult wrong = (CUresult)fake_machine_device(device, &found);
    if (!wrong) *bytes = found.total;
    return wrong;
}

/* ---- Contexts ---------------------------------------------------------------------------------------------------- */

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    struct fake_device found;
    ENTER("cuDevicePrimaryCtxRetain");
    const CUresult wrong = (CUresult)fake_machine_device(device, &found);
    if (wrong || found.refuses) return wrong ? wrong : (CUresult)found.refuses;
    contexts[device].device = device;
    ++contexts[device].retained;
    fake_hold(FAKE_CONTEXTS, 1);
    *context = &contexts[device];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    ENTER("cuDevicePrimaryCtxRelease");
    if (!contexts[device].retained) return CUDA_ERROR_INVALID_CONTEXT;
    --contexts[device].retained;
    fake_hold(FAKE_CONTEXTS, -1);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPushCurrent(CUcontext context)
{
    ENTER("cuCtxPushCurrent");
    if (!context || !context->retained || depth == MAX_DEPTH) return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = context;
    fake_hold(FAKE_PUSHED, 1);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPopCurrent(CUcontext *context)
{
    ENTER_CONTEXT("cuCtxPopCurrent");
    *context = stack[--depth];
    fake_hold(FAKE_PUSHED, -1);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
    ENTER("cuCtxGetCurrent");
    *context = depth ? stack[depth - 1] : NULL;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
    ENTER_CONTEXT("cuCtxGetDevice");
    *device = stack[depth - 1]->device;
    return CUDA_SUCCESS;
}

/* Marks for profilers, of which this driver has none. */
EXPORT CUresult cuProfilerStart(void)
{
    return CUDA_SUCCESS;
}

EXPORT CUresult cuProfilerStop(void)
{
    return CUDA_SUCCESS;
}
