// A launch as the fake runtime sees it: one more piece of work on a stream.
#include <cuda_runtime_api.h>

#include <cstdlib>

#include "tests/emu/emu.h"
#include "tests/fakes/cuda/fake.h"

namespace yoke::emu {

namespace {

struct Work {
    const char *name;
    dim3 grid, block;
    size_t shared_bytes;
    std::function<void()> kernel;
};

int do_work(void *context)
{
    const Work &work = *static_cast<Work *>(context);
    return run(work.name, work.grid, work.block, work.shared_bytes, work.kernel)
               ? cudaSuccess
               : cudaErrorLaunchFailure;
}

void drop_work(void *context)
{
    delete static_cast<Work *>(context);
}

}  // namespace

cudaError_t launch(const char *name, dim3 grid, dim3 block, size_t shared_bytes,
                   cudaStream_t stream, const void *arguments, size_t bytes,
                   std::function<void()> kernel)
{
    const size_t threads = (size_t)block.x * block.y * block.z;
    const bool fits = grid.x && grid.y && grid.z && grid.x <= 0x7fffffffu && grid.y <= 65535 &&
                      grid.z <= 65535 && threads && threads <= 1024 && shared_bytes <= 48 * 1024;
    if (!fits) return cudaErrorInvalidConfiguration;
    fake_enqueue("cudaLaunchKernel", stream, do_work, drop_work,
                 new Work{name, grid, block, shared_bytes, std::move(kernel)}, arguments, bytes);
    return cudaGetLastError();  // as after <<<>>>: of this launch, or what nobody asked for before it
}

int block_size(int usual)
{
    const char *text = getenv("YOKE_EMU_THREADS");
    return text ? atoi(text) : usual;
}

}  // namespace yoke::emu
