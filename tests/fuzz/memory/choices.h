// choices.h: choices of a program, read from bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace yoke::fuzz {

class Choices {
public:
    Choices(const uint8_t *bytes, size_t size) : next_(bytes), end_(bytes + size) {}
    bool empty() const { return next_ == end_; }
    // Returns a number below `end`, up to 65536; 0 once the bytes are used up.
    uint64_t below(uint64_t end)
    {
        if (end <= 1) return 0;
        return (end <= 256 ? byte() : byte() << 8 | byte()) % end;
    }
    bool one_in(uint64_t n) { return below(n) == n - 1; }

private:
    uint64_t byte() { return empty() ? 0 : *next_++; }

    const uint8_t *next_;
    const uint8_t *const end_;
};

}  // namespace yoke::fuzz
