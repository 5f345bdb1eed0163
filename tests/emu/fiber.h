// Stack for a function that can be left and entered again.
#pragma once

#include <cstddef>

namespace yoke::emu {

class Fiber {
public:
    Fiber() = default;  // without a stack: stands for the code that runs now, after a switch
    ~Fiber();
    Fiber(const Fiber &) = delete;
    Fiber &operator=(const Fiber &) = delete;

    // Makes the next switch to this fiber call `body`, which never returns.
    void start(void (*body)());
    // Leaves this fiber, which must be the running fiber, for another.
    void switch_to(Fiber &other);
    // Leaves this fiber for the last time: start() may follow.
    void end_into(Fiber &other);

private:
    void enter(Fiber &other);
    static void first_entry();

    void *stack_ = nullptr;
    void *pointer_ = nullptr;  // where it was left
    void (*body_)() = nullptr;
    void *sanitizer_ = nullptr;  // AddressSanitizer's own notes
    const void *bottom_ = nullptr;
    size_t size_ = 0;
};

}  // namespace yoke::emu
