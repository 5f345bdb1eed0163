// Overruns of global memory: the bytes behind a launch's outputs, which the kernel must not change.
#pragma once

#include <cstddef>
#include <vector>

struct yoke_launch;

namespace yoke::emu {

class Untouched {
public:
    // Watches the bytes from the end of each written operand to the earliest place of the next block. If there are no
    // such bytes, or other written operands lie there, they are not watched.
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
