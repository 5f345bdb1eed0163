// A launch from the view of the fake runtime: a piece of work on a stream.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "core/backend/backend.h"
#include "tests/emu/emu.h"
#include "tests/emu/races.h"
#include "tests/emu/untouched.h"
#include "tests/fakes/cuda/fake.h"

namespace yoke::emu {

namespace {

// Verdict on the program. A test may take a finding's error for an expected error, or never read the error. The
// program fails in any case. The fake runtime does a single piece of work at a time, so no lock is needed.
struct Verdict {
    int findings = 0;
    const char *first = "";
    ~Verdict()
    {
        if (!findings) return;
        fprintf(stderr, "emu: launches of this program that have findings: %d, of %s first\n",
                findings, first);
        fflush(nullptr);
        _exit(1);
    }
} g_verdict;

struct Work {
    const char *name;
    dim3 grid, block;
    size_t shared_bytes;
    std::function<void()> kernel;
    Untouched untouched;
    std::vector<Span> operands;
};

std::vector<Span> operands_of(const yoke_launch *record)
{
    std::vector<Span> spans;
    for (int i = 0; watches_races() && i < record->operand_count; ++i)
        spans.push_back({(char *)record->operands[i].begin, record->operands[i].bytes});
    return spans;
}

bool run_work(const Work &work)
{
    const size_t blocks = (size_t)work.grid.x * work.grid.y * work.grid.z;
    if (!watches_races() || blocks == 1)
        return run(work.name, work.grid, work.block, work.shared_bytes, work.kernel);
    std::vector<Span> memory;
    fake_blocks(
        [](void *list, void *place, size_t bytes) {
            static_cast<std::vector<Span> *>(list)->push_back({static_cast<char *>(place), bytes});
        },
        &memory);
    return run_watched(work.name, memory, work.operands, work.grid, work.block, work.shared_bytes,
                       work.kernel);
}

int do_work(void *context)
{
    Work &work = *static_cast<Work *>(context);
    work.untouched.keep();
    if (run_work(work) && work.untouched.holds(work.name)) return cudaSuccess;
    if (!g_verdict.findings++) g_verdict.first = work.name;
    return cudaErrorLaunchFailure;
}

void drop_work(void *context)
{
    delete static_cast<Work *>(context);
}

}  // namespace

cudaError_t launch(const char *name, const void *function, const yoke_launch *record, dim3 grid,
                   dim3 block, size_t shared_bytes, const void *arguments, size_t bytes,
                   std::function<void()> kernel)
{
    const size_t threads = (size_t)block.x * block.y * block.z;
    const bool fits = grid.x && grid.y && grid.z && grid.x <= 0x7fffffffu && grid.y <= 65535 &&
                      grid.z <= 65535 && threads && threads <= 1024 && shared_bytes <= 48 * 1024;
    if (!fits) return cudaErrorInvalidConfiguration;
    if (const cudaError_t refused = fake_resources(function, threads)) return refused;
    if (fake_note(name)) return cudaSuccess;
    fake_enqueue("cudaLaunchKernel", static_cast<cudaStream_t>(record->stream), do_work, drop_work,
                 new Work{name, grid, block, shared_bytes, std::move(kernel), Untouched(record),
                          operands_of(record)},
                 arguments, bytes);
    return cudaGetLastError();  // as after <<<>>>: this launch's error, or an unread earlier error
}

int block_size(int usual)
{
    const char *text = getenv("YOKE_EMU_THREADS");
    return text ? atoi(text) : usual;
}

}  // namespace yoke::emu
