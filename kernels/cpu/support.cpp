// Failures, names and scratch: cpu.h without its threads.
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "core/backend/ops.inc"
#include "kernels/cpu/cpu.h"

namespace yoke::cpu {

const yoke_host *g_host = nullptr;

yoke_status fail(yoke_status status, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return g_host->set_error(status, 0, text);
}

yoke_status fail_errno(yoke_status status, const char *what, uint64_t bytes)
{
    int code = errno;
    char text[256];
    snprintf(text, sizeof(text), "%s of %llu bytes failed: %s", what, (unsigned long long)bytes,
             strerror(code));
    return g_host->set_error(status, code, text);
}

const char *op_name(int32_t op)
{
#define YOKE_NAME(name) #name,
    static const char *const names[] = {YOKE_FOR_EACH_OP(YOKE_NAME, YOKE_NAME)};
#undef YOKE_NAME
    return op >= 0 && op < YOKE_OP_COUNT ? names[op] : "unknown op";
}

struct Dtype {
    const char *name;
    int64_t size;
};

static const Dtype kDtypes[YOKE_DTYPE_COUNT] = {
    {"none", 0},  {"float64", 8}, {"float32", 4}, {"float16", 2}, {"bfloat16", 2},
    {"int64", 8}, {"int32", 4},   {"int8", 1},    {"uint8", 1},   {"bool", 1},
};

const char *dtype_name(yoke_dtype dtype)
{
    return dtype >= 0 && dtype < YOKE_DTYPE_COUNT ? kDtypes[dtype].name : "an unknown dtype";
}

int64_t dtype_size(yoke_dtype dtype)
{
    return dtype >= 0 && dtype < YOKE_DTYPE_COUNT ? kDtypes[dtype].size : 0;
}

yoke_status bad_dtype(const yoke_launch *launch, const char *operand, yoke_dtype dtype)
{
    return fail(YOKE_E_TYPE,
                "%s: %s has dtype %s, which the cpu kernel does not take; cast it first",
                op_name(launch->op), operand, dtype_name(dtype));
}

yoke_status Scratch::reserve(uint64_t bytes)
{
    return g_host->scratch_alloc(launch_->device, bytes ? bytes : 1, launch_->stream, &data_);
}

Scratch::~Scratch()
{
    if (data_) g_host->scratch_free(launch_->device, data_, launch_->stream);
}

}  // namespace yoke::cpu
