// Replacement for the zlib functions of idx.cpp, in a build without zlib: plain files are read, compressed files are
// refused.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <new>

namespace yoke {

constexpr int Z_OK = 0, Z_ERRNO = -1, Z_DATA_ERROR = -3, Z_MEM_ERROR = -4;

struct PlainFile {
    int descriptor, state;
    bool begun;
};
using gzFile = PlainFile *;

inline gzFile gzdopen(int descriptor, const char *)
{
    return new (std::nothrow) PlainFile{descriptor, Z_OK, false};
}

inline void gzclose_r(gzFile file)
{
    if (file) close(file->descriptor);
    delete file;
}

inline void gzbuffer(gzFile, unsigned) {}

inline int gzdirect(gzFile)
{
    return 1;
}

inline int gzread(gzFile file, void *to, unsigned bytes)
{
    unsigned done = 0;
    while (done < bytes) {
        const ssize_t got = ::read(file->descriptor, static_cast<char *>(to) + done, bytes - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            file->state = Z_ERRNO;
            return -1;
        }
        if (got == 0) break;
        done += static_cast<unsigned>(got);
    }
    const auto *head = static_cast<const unsigned char *>(to);
    if (!file->begun && done > 1 && head[0] == 0x1f && head[1] == 0x8b) file->state = Z_DATA_ERROR;
    file->begun = true;
    return file->state == Z_OK ? static_cast<int>(done) : -1;
}

inline const char *gzerror(gzFile file, int *state)
{
    *state = file->state;
    return file->state == Z_DATA_ERROR
               ? "this build has no zlib (YOKE_ZLIB); inflate the file first"
               : "";
}

}  // namespace yoke
