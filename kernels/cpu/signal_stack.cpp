#include "kernels/cpu/signal_stack.h"

#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <algorithm>

namespace yoke::cpu {

// Returns room for a handler and for the registers that the kernel saves, which grow with the processor.
static size_t stack_bytes()
{
    size_t least = 0;
#ifdef AT_MINSIGSTKSZ
    least = getauxval(AT_MINSIGSTKSZ);
#endif
    constexpr size_t kPage = 4096;
    return (std::max<size_t>(64 << 10, 8 * least) + kPage - 1) & ~(kPage - 1);
}

SignalStack::SignalStack()
{
    stack_t present = {};
    if (sigaltstack(nullptr, &present) || !(present.ss_flags & SS_DISABLE)) return;
    const size_t bytes = stack_bytes();
    void *start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return;
    stack_t wanted = {};
    wanted.ss_sp = start;
    wanted.ss_size = bytes;
    if (sigaltstack(&wanted, nullptr)) {
        munmap(start, bytes);
        return;
    }
    start_ = start;
    bytes_ = bytes;
}

// If somebody else has replaced the stack, they may put it back, so it stays.
SignalStack::~SignalStack()
{
    stack_t present = {};
    if (!start_ || sigaltstack(nullptr, &present) || present.ss_sp != start_) return;
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    if (sigaltstack(&none, nullptr) == 0) munmap(start_, bytes_);
}

}  // namespace yoke::cpu
