#include "tests/emu/record.h"

#include <dlfcn.h>

#include <cstdio>

#include "core/backend/backend.h"
#include "tests/fakes/cuda/fake.h"

namespace yoke::emu {

namespace {

// Returns the offset of a function within its library.
size_t offset_of(const void *function)
{
    Dl_info info{};
    if (!dladdr(function, &info)) return 0;
    return (size_t)((const char *)function - (const char *)info.dli_fbase);
}

}  // namespace

bool records()
{
    return fake_record() != nullptr;
}

void record(const yoke_launch *launch, const char *name, const void *kernel, dim3 grid, dim3 block,
            size_t shared_bytes, const std::vector<unsigned char> &parameters)
{
    FILE *const to = fake_record();
    fprintf(to, "{\"op\": \"%s\", \"kernel\": %zu, \"blocks\": [%u, %u], \"threads\": %u, ", name,
            offset_of(kernel), grid.x, grid.y, block.x);
    fprintf(to, "\"shared\": %zu, \"operands\": [", shared_bytes);
    for (int i = 0; i < launch->operand_count; ++i) {
        const yoke_operand &operand = launch->operands[i];
        fprintf(to, "%s[%zu, %llu, %d]", i ? ", " : "", (size_t)operand.begin,
                (unsigned long long)operand.bytes, (int)operand.dtype);
    }
    fprintf(to, "], \"parameters\": \"");
    for (const unsigned char byte : parameters) fprintf(to, "%02x", byte);
    fprintf(to, "\"}\n");
    fflush(to);
}

}  // namespace yoke::emu
