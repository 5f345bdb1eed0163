// What oneDNN is told for the whole process.
#include "kernels/cpu/gemm.h"

#include <cstdio>
#include <cstring>

#include "kernels/cpu/gemm_cache.h"
#include "kernels/cpu/gemm_room.h"

// oneDNN's OpenMP, whichever library of the process it is: nothing else here is built against it.
extern "C" {
__attribute__((weak)) int omp_get_max_threads(void);
__attribute__((weak)) void omp_set_num_threads(int);
}

namespace yoke::cpu {

void limit_onednn(const char *isa)
{
    if (strcmp(isa, "base") == 0) dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41);
    if (strcmp(isa, "v3") == 0) dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
    if (strcmp(isa, "v4") == 0) dnnl_set_max_cpu_isa(dnnl_cpu_isa_all);
}

void describe_onednn(char *text, size_t bytes)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, bytes, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
}

bool onednn_has_bf16()
{
    constexpr unsigned kBf16 = dnnl_cpu_isa_avx512_core_bf16;
    return (dnnl_get_effective_cpu_isa() & kBf16) == kBf16;
}

OneThread::OneThread() : before_(omp_get_max_threads ? omp_get_max_threads() : 1)
{
    if (before_ == 1) return;
    if (has_room_for_openmp()) {
        omp_set_num_threads(1);
    } else {
        before_ = 1;
        status_ = dnnl_out_of_memory;
    }
}

OneThread::~OneThread()
{
    if (before_ != 1) omp_set_num_threads(before_);
}

}  // namespace yoke::cpu
