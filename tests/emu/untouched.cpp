#include "tests/emu/untouched.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "core/backend/backend.h"
#include "tests/fakes/cuda/fake.h"

namespace yoke::emu {

// Alignment of blocks in device memory (yoke_backend_device_info): the next block begins there at the earliest.
constexpr uintptr_t kAlignment = 256;

static bool is_written(const yoke_operand &operand)
{
    return (operand.flags & YOKE_OPERAND_WRITE) && operand.begin && operand.bytes;
}

Untouched::Untouched(const yoke_launch *launch)
{
    const auto meets = [&](uintptr_t begin, uintptr_t end) {
        for (int i = 0; i < launch->operand_count; i++) {
            const yoke_operand &other = launch->operands[i];
            const uintptr_t first = (uintptr_t)other.begin;
            if (is_written(other) && first < end && begin < first + other.bytes) return true;
        }
        return false;
    };
    for (int i = 0; i < launch->operand_count; i++) {
        const yoke_operand &operand = launch->operands[i];
        if (!is_written(operand)) continue;
        // Memory behind the block belongs to the host's heap.
        const uintptr_t begin = (uintptr_t)operand.begin + operand.bytes,
                        block = (uintptr_t)fake_end_of_block(operand.begin),
                        end = std::min(block, (begin + kAlignment - 1) / kAlignment * kAlignment);
        if (begin < end && !meets(begin, end))
            zones_.push_back({(const unsigned char *)begin, end - begin, i});
    }
}

void Untouched::keep()
{
    kept_.clear();
    for (const Zone &zone : zones_) kept_.insert(kept_.end(), zone.begin, zone.begin + zone.bytes);
}

bool Untouched::holds(const char *name) const
{
    const unsigned char *kept = kept_.data();
    for (const Zone &zone : zones_) {
        for (size_t i = 0; i < zone.bytes; i++) {
            if (zone.begin[i] == kept[i]) continue;
            fprintf(stderr, "emu: %s: writes byte %zu behind the end of operand %d\n", name, i,
                    zone.operand);
            return false;
        }
        kept += zone.bytes;
    }
    return true;
}

}  // namespace yoke::emu
