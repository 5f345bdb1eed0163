// Failures: cpu.h without its threads.
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "kernels/common/support.h"
#include "kernels/cpu/cpu.h"

namespace yoke::cpu {

const yoke_host *g_host = nullptr;

yoke_status fail(yoke_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const yoke_status told = kernels::tell(g_host, status, 0, format, arguments);
    va_end(arguments);
    return told;
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
    return kernels::refuse_dtype(g_host, "cpu", launch, operand, dtype);
}

}  // namespace yoke::cpu
