// Failures, names and scratch: cpu.h without its threads.
#include <locale.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "kernels/cpu/cpu.h"

namespace yoke::cpu {

const yoke_host *g_host = nullptr;

yoke_status fail(yoke_status status, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    // Not the host program's, which may write a comma for the point.
    const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr), before = uselocale(plain);
    vsnprintf(text, sizeof(text), format, arguments);
    uselocale(before);
    if (plain) freelocale(plain);
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
