// Settings of oneDNN for the whole process, and its properties.
#include "kernels/cpu/onednn.h"

#include <oneapi/dnnl/dnnl.h>

#include <cstdio>
#include <cstring>

#include "kernels/cpu/onednn_exit.h"
#include "kernels/cpu/onednn_parts.h"

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

static bool has_isa(unsigned wanted)
{
    static const unsigned isa = dnnl_get_effective_cpu_isa();
    return (isa & wanted) == wanted;
}

bool onednn_has_bf16()
{
    return has_isa(dnnl_cpu_isa_avx512_core_bf16);
}

bool onednn_has_amx()
{
    return has_isa(dnnl_cpu_isa_avx512_core_amx);
}

yoke_status fail_onednn(dnnl_status_t status, const char *use)
{
    if (status == kProcessEnds)
        return fail(
            YOKE_E_STATE,
            "the process is exiting, so oneDNN can no longer compute products and convolutions; join the threads that compute before main() returns or exit() is called");
    const bool no_memory = status == dnnl_out_of_memory;
    return fail(no_memory ? YOKE_E_OOM : YOKE_E_INTERNAL, "oneDNN failed (status %d%s) on %s",
                (int)status, no_memory ? ": there is no free host memory" : "", use);
}

}  // namespace yoke::cpu
