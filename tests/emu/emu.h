// Blocks of CUDA threads on the CPU: every thread is a fiber that runs until it meets a barrier or ends.
//
// What is held against a kernel, each with the place in its source: a barrier that some threads of a block never reach
// or that they reach in different places; a shuffle whose mask names warp lanes that do not come; two threads at the
// same element of shared memory, one of them writing, with no barrier between (a shuffle is none; one of some warp
// lanes orders those alone); more shared memory, arrays and the launch's together, than a block may have; an index
// beyond a shared array, or beyond one of a thread's own; a vector access that is not aligned; bytes written behind an
// operand. The launch then fails, with the finding on stderr, and so does the program. Shared memory is filled with NaN
// before each block. Reads beyond global memory are AddressSanitizer's to find; what blocks do to each other there is
// looked for where that is asked for (races.h).
//
// Warps of a block and warp lanes of a warp run in a random order (YOKE_EMU_SEED), blocks too, so that what happens to
// work in one order is found out.
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

// The thread that runs now, and the block and grid that it is of.
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

// ---- launches ---------------------------------------------------------------------------------------------------

// Is told when a block, by its number, has ended.
class Watcher {
public:
    virtual void end_block(int block) = 0;

protected:
    ~Watcher() = default;
};

// Runs `kernel` in every thread of every block, in an order of chance or the opposite of that. False, with the finding
// on stderr, if something was held against it.
bool run(const char *name, dim3 grid, dim3 block, size_t shared_bytes,
         const std::function<void()> &kernel, Watcher *watcher = nullptr, bool backwards = false);

// The same as a launch of the runtime that tests link in place of CUDA's: ordered on the stream of its op's record,
// refused as CUDA would. Bytes behind the operands that the op writes must stay as they are.
// Its arguments are the `bytes` at `arguments`: what they point to is what the kernel uses. `function` is the kernel as
// it stands in the source, or null for what stands in for a library's.
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
// YOKE_EMU_THREADS, or the usual number.
int block_size(int usual);

// Tells of a finding and ends the thread that made it; the block is abandoned.
[[noreturn]] void report(const char *place, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// ---- barriers and shuffles -----------------------------------------------------------------------------------------

constexpr unsigned kWholeWarp = 0xffffffffu;

void block_barrier(const char *place);
// A barrier that gives each thread whether any of them brought true.
bool block_vote(const char *place, bool vote);
void warp_barrier(const char *place, unsigned mask = kWholeWarp);

// Gives `bytes` at `mine` to the warp lanes of the mask and takes those of `warp_lane`, after all of them have come.
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

// As CUDA defines them: a warp lane beyond its part of `width` warp lanes gives the caller's own value.
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

// The memory of one array of the block, made when the first thread asks. `tag` is its declaration; null means the
// dynamic array, whose size is the launch's.
struct SharedArray {
    char *data;
    size_t count;
    struct Array *array;  // with who touched each element, and when
};
SharedArray shared_array(const char *place, const void *tag, size_t size, size_t count);
enum class Access { kRead, kWrite, kAdd };  // adding as atomicAdd does, for which threads may meet
void note_access(const char *place, const SharedArray &array, size_t element, Access access);

// An array of shared memory that notes who touches what.
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

    // As atomicAdd does: threads may meet there, but none that reads or writes.
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
