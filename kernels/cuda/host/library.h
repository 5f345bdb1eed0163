// NVIDIA libraries found at run time: cuBLASLt, and others in the same way.
//
// Contract
//  * The used functions of a library stand in a list. From the list come the table of typed functions, by the
//    declarations in the library's own header, and the names to look up:
//        #define YOKE_SOME_CALLS(CALL) CALL(someCreate) CALL(someDestroy)
//        struct SomeCalls { YOKE_SOME_CALLS(YOKE_LIBRARY_MEMBER) };
//        constexpr const char *kSomeNames[] = {YOKE_SOME_CALLS(YOKE_LIBRARY_NAME)};
//  * Yoke looks for a library in the folders of YOKE_CUDA_LIB_PATH, in the nvidia wheels of Python's site-packages,
//    by the system's loader, and in the CUDA toolkit. A working library stays open until the process ends.
#pragma once

#include <cstddef>
#include <cstdint>

namespace yoke::cuda {

#define YOKE_LIBRARY_MEMBER(call) decltype(&::call) call;
#define YOKE_LIBRARY_NAME(call) #call,

struct LibraryName {
    const char *file;              // "libcublasLt.so.13"
    const char *wheel_folders[3];  // in site-packages/nvidia; "" for none
    // Function that returns whether the library works. If not, writes the reason to `why`.
    bool (*accepts)(void *library, char *why, size_t capacity);
};

// Text that grows up to its capacity. Longer text is cut off.
struct Text {
    char *data;
    size_t capacity, length = 0;

    void add(const char *format, ...) __attribute__((format(printf, 2, 3)));
};

// Returns the opened library, or null; `tried` gets each place and its problem. The first of `folders` (separated by
// colons; may be null) with the file decides, because the user asked for this folder. In other places, a library that
// does not work is passed over.
void *find_library(const LibraryName &name, const char *folders, Text &tried);

// Fills a table of functions. Returns the first name that the library does not have, or null.
const char *find_functions(void *library, const char *const *names, size_t count, void *table);

template <class Calls, size_t N>
const char *find_calls(void *library, const char *const (&names)[N], Calls &calls)
{
    static_assert(sizeof(Calls) == N * sizeof(void *), "each function has a name");
    return find_functions(library, names, N, &calls);
}

}  // namespace yoke::cuda
