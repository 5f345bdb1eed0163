#include "kernels/cpu/comm/failure.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace yoke::cpu::comm {

yoke_status fail_system(yoke_status status, const char *format, ...)
{
    const int code = errno;
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length >= 0 && static_cast<size_t>(length) < sizeof text)
        snprintf(text + length, sizeof text - length, ": %s", strerror(code));
    return g_host->set_error(status, code, text);
}

void warn(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    g_host->log(YOKE_LOG_WARN, text);
}

}  // namespace yoke::cpu::comm
