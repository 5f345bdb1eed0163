#include "kernels/common/support.h"

#include <locale.h>

#include <cstdio>

#include "kernels/common/names.h"

namespace yoke::kernels {

yoke_status tell(const yoke_host *host, yoke_status status, int64_t native_code, const char *format,
                 va_list arguments)
{
    char text[1024];
    // Not the host program's, which may write a comma for the point.
    const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr), before = uselocale(plain);
    vsnprintf(text, sizeof text, format, arguments);
    uselocale(before);
    if (plain) freelocale(plain);
    return host->set_error(status, native_code, text);
}

yoke_status refuse_dtype(const yoke_host *host, const char *kind, const yoke_launch *launch,
                         const char *operand, yoke_dtype dtype)
{
    char text[256];
    snprintf(text, sizeof text,
             "%s: %s has dtype %s, which the %s kernel does not support; cast it first",
             op_name(launch->op), operand, dtype_name(dtype), kind);
    return host->set_error(YOKE_E_TYPE, 0, text);
}

}  // namespace yoke::kernels
