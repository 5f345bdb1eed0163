// Choice of the kernels' build: the best level that the CPU and the operating system support.
#include <cstring>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/onednn.h"

namespace yoke::cpu {

namespace base {
extern const KernelTable kTable;
}
#ifdef YOKE_HAS_V3
namespace v3 {
extern const KernelTable kTable;
}
#endif
#ifdef YOKE_HAS_V4
namespace v4 {
extern const KernelTable kTable;
}
#endif

struct Level {
    const char *name;
    const KernelTable *table;
    bool usable;
};

// Returns whether the CPU has the features of the level: a CPU may be missing a feature although it has the others.
// clang 14 does not know levels by name.
#if defined(YOKE_HAS_V3) || defined(YOKE_HAS_V4)
static bool has_v3()
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
#endif

#ifdef YOKE_HAS_V4
static bool has_v4()
{
    return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

yoke_status select_kernels(const KernelTable **out)
{
#if defined(YOKE_HAS_V3) || defined(YOKE_HAS_V4)
    __builtin_cpu_init();
#endif
    // From the least to the most capable. The checks include that the operating system keeps the registers.
    const Level levels[] = {
        {"base", &base::kTable, true},
#ifdef YOKE_HAS_V3
        {"v3", &v3::kTable, has_v3()},
#endif
#ifdef YOKE_HAS_V4
        {"v4", &v4::kTable, has_v4()},
#endif
    };
    const char *wanted = g_host->config("YOKE_CPU_ISA");
    const Level *best = nullptr;
    for (const Level &level : levels) {
        if (wanted && *wanted && strcmp(wanted, level.name) != 0) continue;
        if (level.usable)
            best = &level;
        else if (wanted && *wanted)
            return fail(YOKE_E_UNSUPPORTED,
                        "YOKE_CPU_ISA=%s: this CPU does not support %s; unset YOKE_CPU_ISA", wanted,
                        level.table->name);
    }
    if (!best && (!strcmp(wanted, "v3") || !strcmp(wanted, "v4")))
        return fail(
            YOKE_E_UNSUPPORTED,
            "YOKE_CPU_ISA=%s: this build has no kernels for this level; configure a build with -DYOKE_CPU_ISAS=\"base;v3;v4\", or unset YOKE_CPU_ISA",
            wanted);
    if (!best)
        return fail(YOKE_E_VALUE,
                    "YOKE_CPU_ISA=%s: unknown level; use base, v3 or v4, or unset YOKE_CPU_ISA",
                    wanted);
    if (wanted && *wanted) limit_onednn(wanted);
    *out = best->table;
    return YOKE_OK;
}

}  // namespace yoke::cpu
