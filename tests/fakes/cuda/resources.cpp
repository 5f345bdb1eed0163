// Registers: the compiler's figures for a kernel decide whether a multiprocessor can run a single block of the kernel
// at all. See fake.h.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

#include "tests/fakes/cuda/fake.h"

namespace {

// Registers of a multiprocessor of every card from 5.0 on, and the size of the pieces given to a warp.
constexpr size_t kRegisters = 65536, kPiece = 256, kWarp = 32;

struct Needs {
    size_t registers, most_threads;  // a thread's; a block's, by the launch bound
};

// Returns the needs of a library's kernels, by their places in the library: "<place> <registers> <most threads>" a
// line.
const std::map<size_t, Needs> *read_needs()
{
    const char *name = getenv("FAKE_CUDA_REGISTERS");
    if (!name) return nullptr;
    auto *all = new std::map<size_t, Needs>;
    FILE *file = fopen(name, "re");
    if (!file) fprintf(stderr, "fake: FAKE_CUDA_REGISTERS: %s cannot be read\n", name);
    size_t place = 0;
    Needs needs{};
    while (file && fscanf(file, "%zu %zu %zu", &place, &needs.registers, &needs.most_threads) == 3)
        all->emplace(place, needs);
    if (file) fclose(file);
    return all;
}

size_t place_of(const void *function)
{
    Dl_info info{};
    if (!dladdr(function, &info)) return 0;
    return static_cast<size_t>(static_cast<const char *>(function) -
                               static_cast<const char *>(info.dli_fbase));
}

}  // namespace

cudaError_t fake_resources(const void *kernel, size_t threads)
{
    static const std::map<size_t, Needs> *const all = read_needs();
    if (!all || !kernel) return cudaSuccess;
    const auto found = all->find(place_of(kernel));
    if (found == all->end()) {
        fprintf(stderr, "fake: FAKE_CUDA_REGISTERS has no kernel at %zu\n", place_of(kernel));
        return cudaErrorInvalidDeviceFunction;
    }
    const Needs &needs = found->second;
    const size_t of_warp = (needs.registers * kWarp + kPiece - 1) / kPiece * kPiece,
                 wanted = (threads + kWarp - 1) / kWarp * of_warp;
    if (threads > needs.most_threads) {
        fprintf(stderr, "fake: blocks of %zu threads, of which a launch bound allows %zu\n",
                threads, needs.most_threads);
        return cudaErrorInvalidValue;
    }
    if (wanted <= kRegisters) return cudaSuccess;
    fprintf(stderr, "fake: a block of %zu threads of %zu registers: %zu, of which there are %zu\n",
            threads, needs.registers, wanted, kRegisters);
    return cudaErrorLaunchOutOfResources;
}
