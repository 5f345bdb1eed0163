// ladder.h: sources of memory for a request if its arena has none at hand. Each rung costs more than the rung before.
//
//   blocks of the arena used by other streams, behind an inserted wait, or if their fences are reached
//   blocks in the thread's magazines
//   growth: idle chunks of other arenas, then new memory
// The backend has no more:
//   blocks of other streams, if this stream has waited for the other stream's work since the free
//   blocks available after a wait of the stream, of this arena and of others
//   every thread's magazines
//   idle memory of all arenas, once the device has done its work
//   all waiting memory goes back to the backend, with pinned memory and the memory of saves
//   the garbage collectors of script languages, then on_out_of_memory's functions (relief.h), and the rungs above
//   again
#pragma once

#include "core/memory/device_memory.h"

namespace yoke {

class Ladder {
public:
    // Makes the ladder of a request of `bytes`, rounded to `size`. `arena`: null for a block of the backend's own.
    Ladder(DeviceMemory &memory, Arena *arena, uint64_t bytes, uint64_t size)
        : memory_(memory), arena_(arena), bytes_(bytes), size_(size)
    {
    }
    // Returns a block of `size` bytes from the first rung that has memory. Raises YOKE_E_OOM after the last rung, and
    // every other error of the backend.
    Block *climb();
    // Returns a block from the cheap rungs alone. Returns null if a wait, memory of another thread or the host
    // program's help would be needed.
    Block *climb_low();
    static constexpr int kAsks = 3;  // calls of on_out_of_memory's functions for a request

private:
    bool serves(MemoryEvent rung) noexcept;
    // Try a rung each; return true once block_ is there.
    bool try_used();
    bool try_own_magazines();
    bool try_reached();
    bool try_known();
    bool try_grow();
    bool try_waits();
    // Empties all threads' magazines, waits for the device, then gives idle memory back to the backend. Tries for a
    // block after each step; returns true once block_ is there.
    bool press();
    bool ask_host();
    bool is_capturing() const noexcept;

    DeviceMemory &memory_;
    Arena *const arena_;
    const uint64_t bytes_, size_;
    Block *block_ = nullptr;
    std::string reason_;                                   // the backend's, of the last refusal
    MemoryEvent pressed_to_ = MemoryEvent::kAllMagazines;  // the rung at which press() ended
};

}  // namespace yoke
