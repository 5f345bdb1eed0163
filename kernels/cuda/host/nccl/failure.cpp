#include "kernels/cuda/host/nccl/failure.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "kernels/cuda/host/failures.h"
#include "kernels/cuda/host/nccl/library.h"

namespace yoke::cuda::nccl {

namespace {

bool has_word(const char *text, const char *word)
{
    return text && strcasestr(text, word);
}

// Returns the status of NCCL's result. NCCL has a single number for all failures of CUDA; only the text shows missing
// memory.
yoke_status status_of_nccl(ncclResult_t result, const char *words)
{
    switch (result) {
        case ncclSuccess:
            return YOKE_OK;
        case ncclUnhandledCudaError:
            return has_word(words, "out of memory") ? YOKE_E_OOM : YOKE_E_INTERNAL;
        case ncclSystemError:
        case ncclRemoteError:
            return YOKE_E_COMM;
        case ncclInvalidArgument:
        case ncclInvalidUsage:
            return YOKE_E_VALUE;
        default:
            return YOKE_E_INTERNAL;
    }
}

const char *remedy_for(ncclResult_t result, const char *words)
{
    if (has_word(words, "duplicate gpu"))
        return "; two ranks use the same card: call set_device(local_rank) first";
    if (has_word(words, "out of memory"))
        return "; free memory of the card, or lower NCCL_BUFFSIZE or NCCL_MAX_NCHANNELS";
    return result == ncclRemoteError ? "; see the errors of the other ranks"
                                     : "; set NCCL_DEBUG=INFO for details from NCCL";
}

const char *name_of(ncclResult_t result)
{
    static const char *const kResults[] = {
        "ncclSuccess",         "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError",
        "ncclInvalidArgument", "ncclInvalidUsage",       "ncclRemoteError", "ncclInProgress"};
    const auto number = static_cast<unsigned>(result);
    return number < 8 ? kResults[number] : "an unknown result";
}

void write_place(const Place &place, char *text, size_t capacity)
{
    snprintf(text, capacity, "%s: cuda:%d, rank %d of %d", place.call, place.device->index,
             place.rank, place.size);
}

}  // namespace

Place place_of(const Comm &comm, const char *call, void *stream)
{
    return {call, comm.device, comm.rank, comm.size, stream};
}

void clear(yoke_comm_fault *fault)
{
    if (!fault) return;
    fault->kind = YOKE_COMM_FAULT_NONE;
    fault->rank = -1;
    fault->keeps_memory = 0;
}

yoke_status fail_at(const Place &place, yoke_status status, const char *format, ...)
{
    char where[128], text[768];
    write_place(place, where, sizeof where);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return fail(status, 0, "%s: %s", where, text);
}

yoke_status fail_nccl(const Place &place, ncclComm_t handle, ncclResult_t result,
                      const char *function)
{
    const Calls &call = *find_calls();
    const char *words = call.ncclGetLastError(handle);
    char where[128], text[896];
    write_place(place, where, sizeof where);
    snprintf(text, sizeof text, "%s: %s failed with %s (%d), %s%s%.400s%s", where, function,
             name_of(result), static_cast<int>(result), call.ncclGetErrorString(result),
             words && *words ? ": " : "", words ? words : "", remedy_for(result, words));
    const Scope scope(place.device, place.call);  // CUDA is asked whether the device is lost
    if (scope.status() == YOKE_E_DEVICE_LOST) return scope.status();
    yoke_launch launch{};
    launch.op = -1;
    launch.device = place.device;
    launch.stream = place.stream;
    return library_failed(&launch, status_of_nccl(result, words), result, text, why_lost(&launch));
}

yoke_status fail_wait(const Place &place, ncclComm_t handle, const Outcome &outcome,
                      const char *function, yoke_comm_fault *fault)
{
    switch (outcome.ending) {
        case Ending::kDone:
            return YOKE_OK;
        case Ending::kFailed:
            if (fault && outcome.result == ncclRemoteError) fault->kind = YOKE_COMM_FAULT_DIED;
            return fail_nccl(place, handle, outcome.result, function);
        case Ending::kLate:
            if (fault) fault->kind = YOKE_COMM_FAULT_LATE;
            return fail_at(
                place, YOKE_E_TIMEOUT,
                "%s has not finished in time: a rank is missing or late, or its network does not answer; see the errors of the other ranks",
                function);
        case Ending::kStuck:
            if (fault) {
                fault->kind = YOKE_COMM_FAULT_LATE;
                fault->rank = place.rank;
            }
            return fail_at(
                place, YOKE_E_TIMEOUT,
                "%s has not returned in time: NCCL or the driver hangs on this rank, so this process can no longer use the card; for details, set NCCL_DEBUG=INFO and read the kernel's log",
                function);
        case Ending::kOver:
            return fail_at(place, YOKE_E_CANCELLED, "the group has failed during %s", function);
        case Ending::kAborted:
            break;
    }
    if (fault) fault->kind = YOKE_COMM_FAULT_ABORTED;
    return fail_at(place, YOKE_E_CANCELLED, "this communicator was aborted during %s", function);
}

void warn_at(const Place &place, const char *format, ...)
{
    char where[128], text[384], line[640];
    write_place(place, where, sizeof where);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(line, sizeof line, "%s: %s", where, text);
    g_host->log(YOKE_LOG_WARN, line);
}

}  // namespace yoke::cuda::nccl
