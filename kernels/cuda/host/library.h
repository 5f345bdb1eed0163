// Libraries of NVIDIA's that are found at run time: cuBLASLt, and others after its pattern.
//
// Contract
//  * What is called of a library stands in one list, from which come the table of typed functions, by the declarations
//    of the library's own header, and the names to look up:
//        #define YOKE_SOME_CALLS(CALL) CALL(someCreate) CALL(someDestroy)
//        struct SomeCalls { YOKE_SOME_CALLS(YOKE_LIBRARY_MEMBER) };
//        constexpr const char *kSomeNames[] = {YOKE_SOME_CALLS(YOKE_LIBRARY_NAME)};
//  * A library is looked for in the folders of YOKE_CUDA_LIB_PATH, in the nvidia wheels of Python's site-packages,
//    where the system's loader looks, and in the CUDA toolkit. One that serves stays open for the life of the process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace yoke::cuda {

#define YOKE_LIBRARY_MEMBER(call) decltype(&::call) call;
#define YOKE_LIBRARY_NAME(call) #call,

struct LibraryName {
    const char *file;              // "libcublasLt.so.13"
    const char *wheel_folders[3];  // in site-packages/nvidia; "" for none
    // Whether the library serves; else why not, in `why`.
    bool (*accepts)(void *library, char *why, size_t capacity);
};

// Text that grows up to the end of its room.
struct Text {
    char *data;
    size_t capacity, length = 0;

    void add(const char *format, ...) __attribute__((format(printf, 2, 3)));
};

// The opened library, or null with each place and what was wrong there in `tried`. The first of `folders` (colons
// between them; may be null) that has the file decides, for somebody wants it; elsewhere a library that does not serve
// is passed over.
void *find_library(const LibraryName &name, const char *folders, Text &tried);

// Fills a table of functions. The first name that is missing, or null.
const char *find_functions(void *library, const char *const *names, size_t count, void *table);

template <class Calls, size_t N>
const char *find_calls(void *library, const char *const (&names)[N], Calls &calls)
{
    static_assert(sizeof(Calls) == N * sizeof(void *), "one name for each function");
    return find_functions(library, names, N, &calls);
}

}  // namespace yoke::cuda
