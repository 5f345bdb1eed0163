// What oneDNN is told for the whole process.
#include "kernels/cpu/onednn.h"

#include <oneapi/dnnl/dnnl.h>

#include <cstdio>
#include <cstring>

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

}  // namespace yoke::cpu
