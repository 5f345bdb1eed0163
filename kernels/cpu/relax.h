// relax.h: the pause of a thread that spins.
#pragma once

namespace yoke::cpu {

// Leaves the processor's resources to its other hardware thread for a moment.
inline void relax()
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace yoke::cpu
