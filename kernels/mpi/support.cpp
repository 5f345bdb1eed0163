#include "kernels/common/support.h"

#include "kernels/mpi/mpi.h"

namespace yoke::mpi {

const yoke_host *g_host = nullptr;

yoke_status fail(yoke_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const yoke_status told = kernels::tell(g_host, status, 0, format, arguments);
    va_end(arguments);
    return told;
}

yoke_status fail_mpi(int code, const char *call)
{
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(code, text, &length);
    return fail(YOKE_E_COMM, "mpi: %s failed: %s", call, text);
}

extern const CombineFn kCombineBase;
#ifdef YOKE_HAS_V3
extern const CombineFn kCombineV3;
#endif

CombineFn best_combine()
{
#ifdef YOKE_HAS_V3
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))
        return kCombineV3;
#endif
    return kCombineBase;
}

}  // namespace yoke::mpi
