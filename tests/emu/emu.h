// Blocks of CUDA threads on the CPU: every thread is a fiber that runs until it comes to a barrier or ends.
//
// The emulation reports these findings, each with the place in the kernel's source:
//  * a barrier that some threads of a block never reach, or that threads reach in different places;
//  * a shuffle whose mask names warp lanes that do not come;
//  * two threads at an element of shared memory, with a write and without a barrier between. A shuffle is no barrier;
//    a barrier of some warp lanes orders only these lanes;
//  * more shared memory, arrays and the launch's together, than a block may have;
//  * an index beyond a shared array, or beyond a thread's own array;
//  * a vector access that is not aligned;
//  * bytes written behind an operand.
// The launch then fails, with the finding on stderr, and so does the program. Shared memory is filled with NaN before
// each block. AddressSanitizer finds reads beyond global memory. Conflicts of blocks in global memory are searched on
// request (races.h).
//
// Warps of a block and warp lanes of a warp run in a random order (YOKE_EMU_SEED), and so do blocks. This finds
// kernels that work by chance in a single order.
#pragma once

#include <driver_types.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

struct yoke_launch;

namespace yoke::emu {

constexpr int kWarp = 32;

// The running thread, and its block and grid.
struct Thread {
    uint3 index;
    int number;  // in the block
};
struct Grid {
    uint3 block_index;
    dim3 block_size, grid_size;
};
extern constinit thread_local const Thread *g_thread;
extern constinit thread_local const Grid *g_grid;

// ---- launches -------------------------------------------------------------------------------------------------------

// Is told when a block, by its number, has ended.
class Watcher {
public:
    virtual void end_block(int block) = 0;

protected:
    ~Watcher() = default;
};

// Runs `kernel` in every thread of every block, in a random order or in the opposite order. Returns false, with the
// finding on stderr, if there is a finding.
bool run(const char *name, dim3 grid, dim3 block, size_t shared_bytes,
         const std::function<void()> &kernel, Watcher *watcher = nullptr, bool backwards = false);

// Launches a kernel through the fake runtime: ordered on the stream of the op's record, and refused if CUDA would
// refuse the launch. Bytes behind the operands that the op writes must not change.
// The kernel's arguments are the `bytes` at `arguments`; the kernel uses the memory to which they point. `function`
// is the kernel in the source, or null for a replacement of a library's kernel.
cudaError_t launch(const char *name, const void *function, const yoke_launch *record, dim3 grid,
                   dim3 block, size_t shared_bytes, const void *arguments, size_t bytes,
                   std::function<void()> kernel);
template <class Kernel>
cudaError_t launch(const char *name, const void *function, const yoke_launch *record, dim3 grid,
                   dim3 block, size_t shared_bytes, const Kernel &kernel)
{
    return launch(name, function, record, grid, block, shared_bytes, &kernel, sizeof kernel,
                  kernel);
}
// Returns YOKE_EMU_THREADS, or the usual number.
int block_size(int usual);

// Reports a finding and ends the thread that made the finding; the block is abandoned.
[[noreturn]] void report(const char *place, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// ---- barriers and shuffles ------------------------------------------------------------------------------------------

constexpr unsigned kWholeWarp = 0xffffffffu;

void block_barrier(const char *place);
// Waits at a barrier, and returns to each thread whether any thread brought true.
bool block_vote(const char *place, bool vote);
void warp_barrier(const char *place, unsigned mask = kWholeWarp);

// Gives `bytes` at `mine` to the warp lanes of the mask and takes the bytes of `warp_lane`, after all lanes have
// come.
void exchange(const char *place, unsigned mask, const void *mine, void *theirs, size_t bytes,
              int warp_lane);
unsigned ballot(const char *place, unsigned mask, bool vote);
inline int warp_lane_number()
{
    return (int)((unsigned)g_thread->number % kWarp);
}

template <class T>
T shuffle_from(const char *place, unsigned mask, T value, int warp_lane)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "CUDA shuffles words of 4 or 8 bytes");
    T result;
    exchange(place, mask, &value, &result, sizeof(T), warp_lane);
    return result;
}

// Shuffles as CUDA defines them: for a lane beyond the caller's part of `width` lanes, the result is the caller's own
// value.
template <class T>
T shuffle(const char *place, unsigned mask, T value, int from, int width = kWarp)
{
    const int me = warp_lane_number();
    return shuffle_from(place, mask, value, me / width * width + (from & (width - 1)));
}
template <class T>
T shuffle_xor(const char *place, unsigned mask, T value, int bits, int width = kWarp)
{
    const int me = warp_lane_number(), from = me ^ bits;
    return shuffle_from(place, mask, value, from / width > me / width ? me : from);
}
template <class T>
T shuffle_up(const char *place, unsigned mask, T value, unsigned distance, int width = kWarp)
{
    const int me = warp_lane_number(), from = me - (int)distance;
    return shuffle_from(place, mask, value, from < me / width * width ? me : from);
}
template <class T>
T shuffle_down(const char *place, unsigned mask, T value, unsigned distance, int width = kWarp)
{
    const int me = warp_lane_number(), from = me + (int)distance;
    return shuffle_from(place, mask, value, from >= me / width * width + width ? me : from);
}

// ---- shared memory --------------------------------------------------------------------------------------------------

// Memory of an array of the block, made when the first thread asks. `tag` is the declaration; null means the dynamic
// array, whose size comes from the launch.
struct SharedArray {
    char *data;
    size_t count;
    struct Array *array;  // with who touched each element, and when
};
SharedArray shared_array(const char *place, const void *tag, size_t size, size_t count);
enum class Access { kRead, kWrite, kAdd };  // adding as atomicAdd does, for which threads may meet
void note_access(const char *place, const SharedArray &array, size_t element, Access access);

// Array of shared memory that records all accesses.
template <class T>
class Shared {
public:
    Shared(const char *name, const void *tag, size_t count)
        : name_(name), array_(shared_array(name, tag, sizeof(T), count))
    {
    }

    class Element {
    public:
        Element(const Shared &array, size_t i) : array_(array), i_(i) {}
        operator T() const
        {
            note_access(array_.name_, array_.array_, i_, Access::kRead);
            T value;
            memcpy(&value, array_.array_.data + i_ * sizeof(T), sizeof(T));
            return value;
        }
        Element &operator=(T value)
        {
            note_access(array_.name_, array_.array_, i_, Access::kWrite);
            memcpy(array_.array_.data + i_ * sizeof(T), &value, sizeof(T));
            return *this;
        }
        Element &operator=(const Element &other) { return *this = (T)other; }
        Element(const Element &) = default;
        Element &operator+=(T value) { return *this = (T)(T(*this) + value); }

    private:
        const Shared &array_;
        size_t i_;
    };

    Element operator[](int64_t i) const
    {
        if (i < 0 || (size_t)i >= array_.count)
            report(name_, "index %lld of an array of %zu", (long long)i, array_.count);
        return Element(*this, (size_t)i);
    }

    // Adds as atomicAdd does: threads may add at the same time, but must not read or write there.
    T add(int64_t i, T x) const
    {
        if (i < 0 || (size_t)i >= array_.count)
            report(name_, "index %lld of an array of %zu", (long long)i, array_.count);
        note_access(name_, array_, (size_t)i, Access::kAdd);
        T old;
        memcpy(&old, array_.data + (size_t)i * sizeof(T), sizeof(T));
        const T sum = (T)(old + x);
        memcpy(array_.data + (size_t)i * sizeof(T), &sum, sizeof(T));
        return old;
    }

private:
    const char *name_;
    SharedArray array_;
};

}  // namespace yoke::emu
