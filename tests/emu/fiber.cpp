#include "tests/emu/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define YOKE_EMU_ASAN 1
#endif

#if !defined(__x86_64__)
#error "the emulation switches stacks in assembly, which is written for x86-64 alone"
#endif

// Saves what the ABI asks a function to keep, exchanges stacks, restores.
extern "C" void yoke_emu_switch(void **left, void *entered);
asm(R"(
    .text
    .globl yoke_emu_switch
    .hidden yoke_emu_switch
    .type yoke_emu_switch, @function
yoke_emu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size yoke_emu_switch, .-yoke_emu_switch
)");

namespace yoke::emu {

static constexpr size_t kStackBytes = 256 * 1024, kGuard = 4096;
static thread_local Fiber *g_entered = nullptr, *g_left = nullptr;

Fiber::~Fiber()
{
    if (!stack_) return;
#ifdef YOKE_EMU_ASAN
    // A stack abandoned for good still has marks around its variables; the next stack may lie here.
    ASAN_UNPOISON_MEMORY_REGION(stack_, kStackBytes + kGuard);
#endif
    munmap(stack_, kStackBytes + kGuard);
}

void Fiber::start(void (*body)())
{
    if (!stack_) {
        stack_ = mmap(nullptr, kStackBytes + kGuard, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stack_ == MAP_FAILED) abort();  // a test without memory cannot go on
        mprotect(stack_, kGuard, PROT_NONE);
        bottom_ = static_cast<char *>(stack_) + kGuard;
        size_ = kStackBytes;
    }
    body_ = body;
    auto *top = reinterpret_cast<uint64_t *>(static_cast<char *>(stack_) + kGuard + kStackBytes);
    *--top = 0;  // no caller
    *--top = reinterpret_cast<uint64_t>(&Fiber::first_entry);
    top -= 6;  // the registers that yoke_emu_switch restores
    pointer_ = top;
}

void Fiber::enter(Fiber &other)
{
    g_left = this;
    g_entered = &other;
    yoke_emu_switch(&pointer_, other.pointer_);
}

void Fiber::switch_to(Fiber &other)
{
#ifdef YOKE_EMU_ASAN
    __sanitizer_start_switch_fiber(&sanitizer_, other.bottom_, other.size_);
    enter(other);
    __sanitizer_finish_switch_fiber(sanitizer_, &g_left->bottom_, &g_left->size_);
#else
    enter(other);
#endif
}

void Fiber::end_into(Fiber &other)
{
#ifdef YOKE_EMU_ASAN
    __sanitizer_start_switch_fiber(nullptr, other.bottom_, other.size_);
#endif
    enter(other);
}

void Fiber::first_entry()
{
#ifdef YOKE_EMU_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &g_left->bottom_, &g_left->size_);
#endif
    g_entered->body_();
}

}  // namespace yoke::emu
