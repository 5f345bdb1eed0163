#include "kernels/cpu/onednn_signals.h"

#include <oneapi/dnnl/dnnl.h>

#include "kernels/common/signals_blocked.h"

namespace yoke::cpu {

// Returns whether oneDNN uses kernels that move the stack pointer: its kernels for AVX and AVX2. ONEDNN_MAX_CPU_ISA
// may choose AVX2 on a processor that has more.
static bool moves_the_stack_pointer()
{
    static const unsigned isa = dnnl_get_effective_cpu_isa();
    return isa == dnnl_cpu_isa_avx || isa == dnnl_cpu_isa_avx2 || isa == dnnl_cpu_isa_avx2_vnni;
}

static const sigset_t &asynchronous()
{
    static const sigset_t set = [] {
        sigset_t made = kernels::signals_but_faults();
        sigdelset(&made, SIGABRT);
        return made;
    }();
    return set;
}

HeldSignals::HeldSignals()
    : held_(moves_the_stack_pointer() && pthread_sigmask(SIG_BLOCK, &asynchronous(), &before_) == 0)
{
}

HeldSignals::~HeldSignals()
{
    if (held_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace yoke::cpu
