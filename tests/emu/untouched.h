// Overruns of global memory: the bytes behind what a launch may write, which must be after its kernel what they were.
#pragma once

#include <cstddef>
#include <vector>

struct yoke_launch;

namespace yoke::emu {

class Untouched {
public:
    // From the end of each operand that is written up to where the next block can begin; nothing if that is the end, or
    // if other operands that are written lie there.
    explicit Untouched(const yoke_launch *launch);

    void keep();
    // False, with a finding on stderr, if a byte has changed since.
    bool holds(const char *name) const;

private:
    struct Zone {
        const unsigned char *begin;
        size_t bytes;
        int operand;
    };
    std::vector<Zone> zones_;
    std::vector<unsigned char> kept_;
};

}  // namespace yoke::emu
