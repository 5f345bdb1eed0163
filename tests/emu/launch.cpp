// A launch as the fake runtime sees it: one more piece of work on a stream.
#include <cstdlib>

#include "core/backend/backend.h"
#include "tests/emu/emu.h"
#include "tests/emu/untouched.h"
#include "tests/fakes/cuda/fake.h"

namespace yoke::emu {

namespace {

struct Work {
    const char *name;
    dim3 grid, block;
    size_t shared_bytes;
    std::function<void()> kernel;
    Untouched untouched;
};

int do_work(void *context)
{
    Work &work = *static_cast<Work *>(context);
    work.untouched.keep();
    const bool right = run(work.name, work.grid, work.block, work.shared_bytes, work.kernel) &&
                       work.untouched.holds(work.name);
    return right ? cudaSuccess : cudaErrorLaunchFailure;
}

void drop_work(void *context)
{
    delete static_cast<Work *>(context);
}

}  // namespace

cudaError_t launch(const char *name, const yoke_launch *record, dim3 grid, dim3 block,
                   size_t shared_bytes, const void *arguments, size_t bytes,
                   std::function<void()> kernel)
{
    const size_t threads = (size_t)block.x * block.y * block.z;
    const bool fits = grid.x && grid.y && grid.z && grid.x <= 0x7fffffffu && grid.y <= 65535 &&
                      grid.z <= 65535 && threads && threads <= 1024 && shared_bytes <= 48 * 1024;
    if (!fits) return cudaErrorInvalidConfiguration;
    return fake_enqueue(
        "cudaLaunchKernel", static_cast<cudaStream_t>(record->stream), do_work, drop_work,
        new Work{name, grid, block, shared_bytes, std::move(kernel), Untouched(record)}, arguments,
        bytes);
}

int block_size(int usual)
{
    const char *text = getenv("YOKE_EMU_THREADS");
    return text ? atoi(text) : usual;
}

}  // namespace yoke::emu
